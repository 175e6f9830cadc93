// The index: show the claims that have all the words that are typed, and the part, verdict and evidence that are chosen.
"use strict";
(() => {
  const form = document.getElementById("filter");
  const fields = ["text", "part", "verdict", "kind"].map((name) => document.getElementById(`filter-${name}`));
  const [text, part, verdict, kind] = fields;
  const claims = [...document.querySelectorAll(".claim")];
  const sections = [...document.querySelectorAll(".part")];
  const count = document.getElementById("filter-count");
  const none = document.getElementById("filter-none");

  // All words of the claims come in a file of their own, once somebody begins to look for one.
  function fetchWords() {
    if (window.CLAIM_WORDS || document.getElementById("words")) return;
    document.head.append(Object.assign(document.createElement("script"), { id: "words", src: "words.js", onload: apply }));
  }

  function fits(claim, words) {
    const own = claim.dataset;
    const known = words.length ? (window.CLAIM_WORDS?.[own.name] ?? claim.textContent.toLowerCase()) : "";
    return (
      words.every((word) => known.includes(word)) &&
      (!part.value || own.part === part.value) &&
      (!verdict.value || own.verdict === verdict.value) &&
      (!kind.value || own.kind.split(" ").includes(kind.value))
    );
  }

  function apply() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) fetchWords();
    let shown = 0;
    for (const claim of claims) {
      claim.hidden = !fits(claim, words);
      if (!claim.hidden) shown += 1;
    }
    for (const section of sections) {
      section.hidden = !section.querySelector(".claim:not([hidden])");
    }
    count.textContent = `${shown} of ${claims.length}`;
    none.hidden = shown > 0;
    remember();
  }

  // What is chosen is a part of the address, so that it survives a reload and can be sent to somebody.
  function remember() {
    const chosen = fields.map((field) => [field.id.slice(7), field.value]).filter(([, value]) => value);
    const hash = chosen.length ? `#?${new URLSearchParams(chosen)}` : "";
    if (hash !== location.hash && (hash || location.hash.startsWith("#?"))) {
      history.replaceState(null, "", hash || location.pathname + location.search);
    }
  }

  function recall() {
    if (!location.hash.startsWith("#?")) return;
    const chosen = new URLSearchParams(location.hash.slice(2));
    for (const field of fields) field.value = chosen.get(field.id.slice(7)) || "";
  }

  form.hidden = false;
  recall();
  apply();
  form.addEventListener("input", apply);
  text.addEventListener("focus", fetchWords);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => requestAnimationFrame(apply));
  window.addEventListener("hashchange", () => {
    recall();
    apply();
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      text.focus();
      text.select();
    } else if (event.key === "Escape" && document.activeElement === text) {
      text.value = "";
      apply();
    }
  });
})();
