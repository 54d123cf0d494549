"""The training loop: Muon and AdamW, warm-up, constant rate, linear decay to zero; resumes from its checkpoint."""
import dataclasses
import math
import os
import time

import torch

import model as gemma
from corpus import Windows
from muon import Muon

WARMUP_STEPS = 100
LOSS_CHUNK = 512
SAVE_SECONDS = 180.0


def save_checkpoint(path, **state):
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def load_model(path):
    """The model of a checkpoint, and the checkpoint."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    model = gemma.Gemma2(gemma.Shape(**state["shape"]))
    model.load_state_dict(state["model"])
    return model, state


class Trainer:
    def __init__(self, model, args, compiled):
        self.model, self.args = model, args
        self.step, self.seconds, self.tokens = 0, 0.0, 0
        self.muon = Muon(model.matrices(), lr=args.muon_lr, weight_decay=args.weight_decay)
        self.adam = torch.optim.AdamW([{"params": [model.embedding]}, {"params": model.norms()}],
                                      lr=args.adam_lr, betas=(0.9, 0.95), weight_decay=0.0)
        self.hidden, self.logit_step = model.forward, gemma.logit_step
        if compiled:
            self.hidden = torch.compile(self.hidden, dynamic=False)
            self.logit_step = torch.compile(self.logit_step, dynamic=False)

    def rate(self):
        """Share of the full learning rate: by steps in the warm-up, then by the share of the time that is used up."""
        done = self.seconds / (60.0 * self.args.minutes)
        return min(1.0, (self.step + 1) / WARMUP_STEPS, max(0.0, (1.0 - done) / self.args.decay))

    def loss(self, inputs, targets):
        """Mean cross entropy in nats."""
        h = self.hidden(inputs, torch.bfloat16).flatten(0, 1)
        total = gemma.CappedLoss.apply(h, self.model.embedding, targets.flatten(), LOSS_CHUNK, self.logit_step)
        return total / targets.numel()

    def train_step(self, inputs, targets):
        rate = self.rate()
        for optimizer, lr in ((self.muon, self.args.muon_lr), (self.adam, self.args.adam_lr)):
            for group in optimizer.param_groups:
                group["lr"] = lr * rate
            optimizer.zero_grad()
        loss = self.loss(inputs, targets)
        loss.backward()
        self.muon.step()
        self.adam.step()
        return loss.item()

    def save(self, path):
        save_checkpoint(path, shape=dataclasses.asdict(self.model.shape), model=self.model.state_dict(),
                        muon=self.muon.state_dict(), adam=self.adam.state_dict(), step=self.step,
                        seconds=self.seconds, tokens=self.tokens)

    def resume(self, state):
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.step, self.seconds, self.tokens = state["step"], state["seconds"], state["tokens"]

    def report(self, losses, tokens, seconds, cpu_seconds, steps_per_epoch):
        print(f"step {self.step} epoch {self.step / steps_per_epoch:.2f} tokens {self.tokens / 1e6:.2f}M "
              f"minutes {self.seconds / 60:.1f} rate {self.rate():.3f} loss {sum(losses) / len(losses):.4f} "
              f"tokens/s {tokens / (seconds or 1e-9):.0f}, per CPU second {tokens / (cpu_seconds or 1e-9):.0f}",
              flush=True)

    @torch.no_grad()
    def probe(self, batches, bits_per_byte):
        nats = sum(self.loss(*b).item() for b in batches) / len(batches)
        print(f"step {self.step} held-out loss {nats:.4f} (about {nats * bits_per_byte:.4f} bits per byte)", flush=True)

    def run(self, train, heldout, bits_per_byte):
        """Trains until the time is used up; the first step compiles, and its time is not counted.

        bits_per_byte: factor from nats a token.
        """
        args, losses, tokens, seconds, cpu = self.args, [], 0, 0.0, 0.0
        batches = [heldout.at(i) for i in range(min(args.probe_batches, heldout.steps_per_epoch))]
        compiled, last_save = False, time.monotonic()
        while self.seconds < 60.0 * args.minutes:
            inputs, targets = train.at(self.step)
            start, cpu_start = time.monotonic(), time.process_time()
            losses.append(self.train_step(inputs, targets))
            if compiled:
                cpu += time.process_time() - cpu_start
                seconds += time.monotonic() - start
                self.seconds += time.monotonic() - start
                tokens += inputs.numel()
            compiled = True
            self.step += 1
            self.tokens += inputs.numel()
            if not math.isfinite(losses[-1]):
                raise SystemExit(f"step {self.step}: the loss is {losses[-1]}")
            if self.step % args.log_every == 0:
                self.report(losses, tokens, seconds, cpu, train.steps_per_epoch)
                losses, tokens, seconds, cpu = [], 0, 0.0, 0.0
            if self.step % args.probe_every == 0:
                self.probe(batches, bits_per_byte)
            if time.monotonic() - last_save > SAVE_SECONDS:
                self.save(args.checkpoint)
                last_save = time.monotonic()
        self.save(args.checkpoint)


def train(args, train_stream, heldout_stream, heldout_bytes, vocab_size):
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    if os.path.exists(args.checkpoint):
        model, state = load_model(args.checkpoint)
    else:
        shape = gemma.Shape(vocab_size=vocab_size, ffn_dim=args.ffn_dim, n_layers=args.layers, ctx=args.ctx)
        model, state = gemma.Gemma2(shape), None
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(train_stream)} tokens an epoch", flush=True)
    trainer = Trainer(model, args, not args.no_compile)
    if state:
        trainer.resume(state)
        print(f"goes on from step {trainer.step}", flush=True)
    ctx = model.shape.ctx
    trainer.run(Windows(train_stream, ctx, args.batch, args.seed), Windows(heldout_stream, ctx, args.batch, 0),
                len(heldout_stream) / heldout_bytes / math.log(2.0))
