"""Every command of `malmoi`: its module and what it does, in the order of the help."""

COMMANDS = {
    "list": ("malmoi.commands.list_sources", "show the public sources and what is fetched"),
    "fetch": ("malmoi.commands.fetch", "fetch a public source, verified"),
    "clean": ("malmoi.commands.clean", "clean texts and drop duplicates"),
    "stats": ("malmoi.commands.stats", "count what is in a corpus"),
    "predict": ("malmoi.commands.predict", "label the texts of files, or of a pipe"),
    "report": ("malmoi.commands.report", "say what texts are about: shares, words, themes"),
    "serve": ("malmoi.commands.serve", "answer HTTP requests with a classifier"),
    "explain": ("malmoi.commands.explain", "show which words carried a decision"),
    "evaluate": ("malmoi.finetune.evaluate", "score a classifier on labelled texts"),
    "compare": ("malmoi.commands.compare", "say which of two runs is better, text by text"),
    "export": ("malmoi.commands.export", "write a classifier into a folder for others"),
    "push": ("malmoi.commands.push", "send a classifier to the Hugging Face Hub"),
    "labels": (
        "malmoi.commands.labels",
        "list, import, export or back up labels of the app",
    ),
    "models": ("malmoi.commands.models", "fetch a released model, or show which there are"),
    "cache": ("malmoi.commands.cache", "show or remove the copies that runs keep"),
    "doctor": ("malmoi.commands.doctor", "say what is installed, found and missing"),
    "tokenizer": ("", "train a tokenizer, or compare some"),
    "pretrain": ("malmoi.pretrain.run", "pre-train an encoder on texts"),
    "kfold": ("malmoi.finetune.kfold", "measure and train a classifier on labelled texts"),
    "app": ("malmoi.commands.app", "start the labelling app"),
    "sample": ("malmoi.commands.sample", "show texts before and after cleaning"),
}
# The same as of tokenizer/train.py and tokenizer/evaluate.py.
TOKENIZER_COMMANDS = {
    "train": ("malmoi.tokenizer.train", "train a WordPiece, unigram or BPE tokenizer on a corpus"),
    "evaluate": ("malmoi.tokenizer.evaluate", "compare tokenizers on a corpus: table, JSON, plot"),
}
