"""Build a grammar: a few rules become a transformer whose every weight has a reason."""

# %% A grammar is a spec: mathematics with its own meaning. (`v.read("FILE.pcfg")` reads one from a file.)
import vitrify as v

grammar = v.Grammar.from_text("""
    S  -> NP VP         [1.0]
    NP -> 'the' N [0.6] | 'alice' [0.4]
    N  -> 'dog'   [0.7] | 'cat'   [0.3]
    VP -> 'sleeps' [0.5] | 'sees' NP [0.5]
""")
print("sentences:", [" ".join(sentence) for sentence in list(grammar.sentences())[:4]], "…")

# %% Build it. Nothing is trained: attention heads fetch words and phrases, hidden units apply one rule each.
net = v.build(grammar, "shapes")
print(net)

# %% After every beginning of a sentence, the net says which words may come next.
for beginning in ("", "the", "the dog", "the dog sees"):
    print(f"after {beginning!r}:", v.run(net, beginning.split()).next)

# %% Look inside. The residual stream has named spaces; "complete 2.0" says which phrase of two words ends here.
run = v.trace(net, ["the", "dog", "sees", "alice"])
for word, phrase in zip(run.tokens, run.read("complete 2.0"), strict=True):
    print(f"{word:>6}: {phrase or '–'}")

# %% Why is it so? A unit of the third layer says it, read from the weights themselves.
(rule,) = [units for units in v.explain(net).units if "complete 2.0" in units.name]
print(rule.location, *rule.lines, sep="\n  ")

# %% The same grammar in another shape answers with probabilities: those of exact Bayesian prediction.
predictor = v.build(grammar, "probabilities")
said = v.run(predictor, ["the"]).next
print({word: round(chance, 6) for word, chance in said.items() if chance > 1e-9})

# %% It is right, not nearly right: every beginning of every sentence was asked about.
evidence = v.certify(predictor, grammar)
prefixes = evidence.domains[0]
print(evidence.verdict, "on all", prefixes.count, prefixes.kind, "to length", prefixes.longest)
print("largest error of a probability:", f"{evidence.measured('largest error'):.0e}")
