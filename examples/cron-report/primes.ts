/** A handler that computes: it runs in a thread of its own, and is killed at its timeout. */
import type { TaskContext } from 'holdfast'

export default ({ largest }: { largest: number }, ctx: TaskContext): { primes: number; slot: string } => {
  const isComposite = new Uint8Array(largest)
  let primes = 0
  for (let n = 2; n < largest; n++) {
    if (isComposite[n] === 1) continue
    primes++
    for (let multiple = n * n; multiple < largest; multiple += n) isComposite[multiple] = 1
  }
  // A task of a schedule is due at its slot, even if it runs later.
  return { primes, slot: new Date(ctx.task.availableAt).toISOString() }
}
