/** The promises that the simulation and `holdfast verify` check, by the numbers of docs/reliability.md. */
export const INVARIANTS = {
  I1: 'No lost task: what was accepted is there until it is removed, and ends once all faults are over.',
  I1b: 'No phantom: every task was submitted, by a caller or a schedule, and a call with an unclear outcome makes no more than it was asked for.',
  I2: 'One live lease: no worker takes a task before its lease has lapsed, or a place or a start beyond a limit.',
  I3: 'Fencing: tokens are unique, fences grow by one with each claim, and only the current lease moves a running task.',
  I4: 'Bounded attempts: runs are explained by retries, reschedules and releases, and retries stay within their limit.',
  I5: 'Ended is final: only an operator moves an ended task.',
  I6: 'Idempotency: one task for one key, and every accepted submission of the key gets that task. A signal is kept once.',
  I7: 'Never early, never late: no claim before the due time, none after the expiry.',
  I8: 'The history is linear and complete: numbered without gaps, legal moves, and nothing changes without an entry.',
  I9: 'Recurring work: one task for each slot, none skipped where all are caught up.',
  I10: 'Bounded recovery: without faults, a lapsed lease is taken and a due task is claimed in time.',
  I11: 'Completion means execution: a completed task has the output of a run under the lease that completed it, and a step the result of a run of it.',
  I12: 'Explained repeats: a task begins again only after a return to pending, and a step whose result is recorded does not.',
  I13: 'Payload fidelity: a handler sees the input that was submitted or amended, and signals that were sent.',
  I14: 'Poison containment: a task that kills its worker ends as failed, within its retries.',
  I15: 'No silent fault: every call ends in time, with a result or a typed error, and no rejection is unhandled.',
  I16: 'No cross-talk: a worker only gets tasks of its queues and types.',
} as const

/** The number of a promise. */
export type Invariant = keyof typeof INVARIANTS
