// Ranking of search results: pages written for readers come before the pages of single modules.
var Scorer = {
  score: ([docname, _title, _anchor, _description, score]) =>
    score + (docname.startsWith("reference/") || docname === "log" ? 0 : 30),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
