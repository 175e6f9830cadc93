"""Train twins: networks learn the problem that another one was built for, and the optimum is known exactly."""

# %% The problem: a small language model of the weather. It is the spec of the built net and the source of all data.
import vitrify as v

weeks = ["sun sun sun rain rain sun", "rain rain snow rain", "sun sun rain rain rain snow", "snow rain sun sun sun"]
model = v.NGramModel.fit([week.split() for week in weeks], order=3)

# %% The built net needs no training: it gives the model's own probabilities.
built = v.build(model, max_length=8)
evidence = v.certify(built, model, max_length=4)
print(f"built: {evidence.verdict}, largest error {evidence.measured('largest error'):.0e}")

# %% A sandbox draws rows, and knows the best possible answer to every question about them.
weather = v.sandbox("ngram", model=model, length=8)
row = v.examples(weather, seed=0, split="train", start=2, count=1)
print("a row:", " ".join(weather.symbols[token] for token in row.tokens[0]))

# %% Three twins: three seeds of one small transformer, trained side by side as one compiled program.
small = v.model("transformer", layers=1, heads=2, d_model=16, units=32)
twins = v.train(
    small, weather, members=3, recipe=v.Recipe(steps=300, batch=32, lr=1e-2, evals_per_doubling=1, test_examples=256)
)

# %% `excess` is a twin's loss above the optimum on rows it never saw. Zero is as far as anybody can get.
print(" step" + "".join(f"  twin {twin.identity['seed']}" for twin in twins))
for points in zip(*(twin.curve for twin in twins), strict=True):
    print(f"{points[0]['step']:5}" + "".join(f"  {point['excess']:6.4f}" for point in points))

# %% On the way they pass by simpler predictors. `kl.NAME` says how far a twin is from each one that is known.
for point in twins[0].curve:
    far = {name.removeprefix("kl").lstrip(".") or "optimal": point[name] for name in point if name.startswith("kl")}
    print(f"step {point['step']:3}: nearest to {min(far, key=far.__getitem__)}")

# %% A trained net is the same kind of value as a built one: run it, trace it, save it.
for name, net in (("built", built), ("twin 0", twins[0].weights)):
    print(f"{name:>6}:", {word: round(chance, 2) for word, chance in v.run(net, ["sun", "rain"]).next.items()})
