// Light or dark: what was chosen before, else what the system says; the button in the bar changes it.
"use strict";
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    try {
      return localStorage.getItem("vitrify-theme");
    } catch {
      return null; // storage may be closed to pages that were opened from a disk
    }
  }

  function apply(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (!button) return;
    const other = theme === "dark" ? "light" : "dark";
    button.textContent = theme === "dark" ? "☀" : "☾";
    button.setAttribute("aria-label", `Use ${other} colours`);
    button.title = `Use ${other} colours`;
  }

  const current = () => chosen() || (system.matches ? "dark" : "light");
  apply(current()); // before the page is drawn
  system.addEventListener("change", () => apply(current()));
  document.addEventListener("DOMContentLoaded", () => {
    apply(current());
    const button = document.getElementById("theme");
    if (!button) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const next = root.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("vitrify-theme", next);
      } catch {
        // the choice then lasts for this page
      }
      apply(next);
    });
  });
})();
