"""Bring your own data: from your sentences to a net, a certificate, a sandbox, and tables for other tools."""

# %% Your text: any sentences, as lists of words. Here are a few; `Path("my.txt").read_text().splitlines()` has more.
from pathlib import Path
from tempfile import TemporaryDirectory

import vitrify as v

text = """the cat sat on the mat
the dog sat on the cat
a dog saw the cat on a mat
the cat saw a dog"""
sentences = [line.split() for line in text.splitlines()]

# %% Estimate a language model (smoothed, all words possible), and keep it as an ARPA file that other tools read.
model = v.NGramModel.fit(sentences, order=3)
place = TemporaryDirectory()
model.write(Path(place.name, "cats.arpa"))
print(model, "equal when read again:", v.read(Path(place.name, "cats.arpa")) == model)

# %% It becomes a transformer with one head per word of context, and a table with a unit per listed context.
net = v.build(model, max_length=16)
print(net)
print("after 'the cat':", v.run(net, ["the", "cat"], top=3).next)
print("a whole sentence has the log-probability", round(v.run(net, sentences[0]).log_prob, 3))

# %% A head that looks one word back: attention as you would draw it.
print(v.trace(net, sentences[0]).attention(block=0, head=1))

# %% Certified: the probabilities are the model's, after every short word and many long ones.
evidence = v.certify(net, model, max_length=2, samples=20)
print(evidence.verdict, f"{evidence.cases:,} cases, largest error {evidence.measured('largest error'):.0e}")

# %% The model is a source of data without end, too: with hidden states, and the optimal distribution at every place.
source = v.sandbox("ngram", model=model, length=12)
written = v.write_data(source, Path(place.name, "rows"), {"train": 1000, "test": 100}, layout="datasets")
print({path.name: f"{path.stat().st_size:,} bytes" for path in written.files})
print("load_dataset(FOLDER) of Hugging Face takes it; so does pandas.read_parquet(FILE).")
place.cleanup()
