/** Bugs in durable steps. */
import type { Mutant } from './mutant.ts'

const STEPS = 'runtime/worker/steps/steps.test.ts'
const WAITS = 'runtime/worker/steps/waits.test.ts'
const LOST = 'runtime/worker/steps/lost.test.ts'
const OPERATORS = 'runtime/worker/steps/operators.test.ts'

export const STEP_MUTANTS: readonly Mutant[] = [
  {
    file: 'runtime/worker/steps/journal-writer.ts',
    find: 'if (write.isWrittenIn(fresh))',
    replace: 'if (Number.isNaN(0) && write.isWrittenIn(fresh))',
    breaks: 'a park whose reply was lost ends its run as a lost lease',
    tests: [LOST],
  },
  {
    file: 'core/steps/steps.ts',
    find: 'signal.signalId!, ...(error === null ? null : { error })',
    replace: 'signal.signalId!',
    breaks: 'a refused signal counts as accepted in later runs',
    tests: [WAITS],
  },
  {
    file: 'core/steps/steps.ts',
    find: "state?.kind === 'sleep' || state?.kind === 'wait' ? state.until : wait.until",
    replace: 'wait.until',
    breaks: 'every run moves the end of a sleep',
    tests: [WAITS],
  },
  {
    file: 'core/steps/steps.ts',
    find: 'found.set(wait, left.splice(at, 1)[0]!)',
    replace: 'found.set(wait, left[at]!)',
    breaks: 'two waits take the same signal',
    tests: [WAITS],
  },
  {
    file: 'core/steps/steps.ts',
    find: '...(expiresAt === null ? null : { expiresAt: null }),',
    replace: '',
    breaks: 'a task with steps expires while it sleeps',
    tests: [STEPS],
  },
  {
    file: 'core/steps/steps.ts',
    find: "if (task.cancelRequestedAt !== null) return cancelRun(task, 'park', actor)",
    replace: '',
    breaks: 'a task that was asked to stop sleeps instead',
    tests: [OPERATORS],
  },
  {
    file: 'core/steps/steps.ts',
    find: "  if (task.journal.some((entry) => entry.kind === 'signal' && entry.signalId === id)) return null\n  mustBeLive(task)\n",
    replace:
      "  mustBeLive(task)\n  if (task.journal.some((entry) => entry.kind === 'signal' && entry.signalId === id)) return null\n",
    breaks: 'a signal that was taken is reported as refused when its reply was lost',
    tests: [LOST],
  },
  {
    file: 'core/steps/steps.ts',
    find: 'parked === null ? {} : { parked: task.parked }',
    replace: 'parked === null ? {} : {}',
    breaks: 'a signal of another name ends the view parked',
    tests: [WAITS],
  },
  {
    file: 'core/steps/journal.ts',
    find: 'generation === 0 ?',
    replace: 'generation >= 0 ?',
    breaks: 'a fresh replay uses the keys of the effects that it is to repeat',
    tests: [OPERATORS],
  },
  {
    file: 'runtime/worker/steps/steps.ts',
    find: '    this.#underWay++\n    try {\n      const state',
    replace: '    try {\n      const state',
    breaks: 'a task is parked while one of its steps runs',
    tests: [WAITS],
  },
  {
    file: 'runtime/worker/steps/steps.ts',
    find: "    if (signal !== null) return state?.kind === 'taken' || state?.kind === 'timed-out'\n",
    replace: '',
    breaks: 'a wait counts as over before its timeout is recorded',
    tests: [WAITS],
  },
  {
    file: 'runtime/worker/steps/values.ts',
    find: "kind === 'step' && name === step && op === token",
    replace: "kind === 'step' && op === token",
    breaks: "step two's lost write is taken for step one's",
    tests: [LOST],
  },
  {
    file: 'runtime/worker/runs.ts',
    find: 'if (attempt.isParking) attempt',
    replace: 'if (Number.isNaN(0) && attempt.isParking) attempt',
    breaks: 'a handler that ends while its park is written ends the task',
    tests: [WAITS],
  },
  {
    file: 'core/views.ts',
    find: "scheduled: { status: 'pending', available: 'later', parked: false }",
    replace: "scheduled: { status: 'pending', available: 'later' }",
    breaks: 'parked tasks count as scheduled',
    tests: [OPERATORS],
  },
  {
    file: 'runtime/worker/steps/values.ts',
    find: "      if (isHoldfastError(error, 'STALE_LEASE')) seen.catch(() => {})\n",
    replace: '',
    breaks: 'a step that nobody awaits ends the process of its worker',
    tests: [STEPS],
  },
]
