#!/usr/bin/env python3
"""Makes the demo model: a small Gemma 2 that writes children's stories. One subcommand per stage; see models/README.md.

Needs the Python packages torch, numpy, sentencepiece and gguf, and a C++ compiler for torch.compile.
"""
import argparse
import os

import numpy as np
import sentencepiece

import corpus


def command_tokenizer(args):
    with open(args.out, "wb") as file:
        file.write(corpus.train_tokenizer(args.text, args.vocab))


def command_train(args):
    import trainer
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=args.tokenizer)
    train = np.concatenate(corpus.encode_documents(tokenizer, args.text))
    heldout = np.concatenate(corpus.encode_documents(tokenizer, args.heldout))
    trainer.train(args, train, heldout, os.path.getsize(args.heldout), tokenizer.vocab_size())


def open_model(path):
    """The model in a checkpoint (.pt) or, dequantised, in a GGUF file."""
    if path.endswith(".gguf"):
        import export
        return export.read(path)
    import trainer
    return trainer.load_model(path)[0]


def command_evaluate(args):
    import evaluate
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=args.tokenizer)
    model = open_model(args.model)
    bpb, tokens, size = evaluate.bits_per_byte(model, tokenizer, args.heldout, args.stride or model.shape.ctx // 2,
                                               args.documents)
    print(f"{bpb:.4f} bits per byte ({tokens} tokens, {size} bytes)")


def command_sample(args):
    import evaluate
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=args.tokenizer)
    print(evaluate.sample(open_model(args.model), tokenizer, args.prompt, args.n, args.temp, args.seed))


def command_compare(args):
    import evaluate
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=args.tokenizer)
    relative, largest = evaluate.compare_with_transformers(open_model(args.model), tokenizer, args.heldout)
    print(f"logits against transformers: relative L2 error {relative:.2e}, largest difference {largest:.2e}")


def command_export(args):
    import export
    export.write(open_model(args.checkpoint), args.tokenizer, args.name, args.description, args.license, args.out)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    p = commands.add_parser("tokenizer", help="make the sentencepiece model")
    p.set_defaults(run=command_tokenizer)
    p.add_argument("--text", required=True)
    p.add_argument("--vocab", type=int, default=4096)
    p.add_argument("--out", required=True)

    p = commands.add_parser("train", help="train, or go on from the checkpoint")
    p.set_defaults(run=command_train)
    p.add_argument("--text", required=True)
    p.add_argument("--heldout", required=True)
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--checkpoint", required=True)
    p.add_argument("--minutes", type=float, default=90.0, help="length of the schedule, in minutes of training")
    p.add_argument("--decay", type=float, default=0.6, help="share of the schedule in which the rate falls to zero")
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--ffn-dim", type=int, default=768)
    p.add_argument("--ctx", type=int, default=512)
    p.add_argument("--batch", type=int, default=12, help="windows a step")
    p.add_argument("--muon-lr", type=float, default=0.02)
    p.add_argument("--adam-lr", type=float, default=0.003)
    p.add_argument("--weight-decay", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--log-every", type=int, default=50)
    p.add_argument("--probe-every", type=int, default=500)
    p.add_argument("--probe-batches", type=int, default=4)
    p.add_argument("--no-compile", action="store_true")

    for name, run, text in (("evaluate", command_evaluate, "bits per byte of held-out text"),
                            ("compare", command_compare, "logits against transformers (needs that package)"),
                            ("sample", command_sample, "write a story")):
        p = commands.add_parser(name, help=text)
        p.set_defaults(run=run)
        p.add_argument("--model", required=True, help="checkpoint (.pt) or GGUF file")
        p.add_argument("--tokenizer", required=True)
        if name != "sample":
            p.add_argument("--heldout", required=True)
        if name == "evaluate":
            p.add_argument("--stride", type=int, help="new tokens a window scores (default: half the context)")
            p.add_argument("--documents", type=int, help="only so many stories")
        if name == "sample":
            p.add_argument("--prompt", default="Once upon a time")
            p.add_argument("-n", type=int, default=200)
            p.add_argument("--temp", type=float, default=0.7)
            p.add_argument("--seed", type=int, default=1)

    p = commands.add_parser("export", help="write the GGUF file: Q8_0 matrices, float32 norms")
    p.set_defaults(run=command_export)
    p.add_argument("--checkpoint", required=True)
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--name", default="Peridot Stories")
    p.add_argument("--description", default="A small Gemma 2 trained on public-domain children's stories")
    p.add_argument("--license", default="apache-2.0")
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse()
    arguments.run(arguments)
