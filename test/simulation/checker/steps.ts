/** What handlers saw of their durable steps: which functions ran, and what each step resolved with, in every run of the task. */
import { readJournal } from '../../../src/core/steps/journal.ts'
import type { TaskRecord } from '../../../src/core/task.ts'
import type { Checker } from './checker.ts'

interface Step {
  readonly ran: Set<string>
  /** The run that was first given the result; its fence. */
  resolvedUnder: number | null
  value: string | null
}

export interface Sent {
  readonly task: string
  readonly id: string
  readonly value: string
  readonly generation: number
  outcome: 'ok' | 'info' | 'refused'
}

export class StepWitness {
  /** By the key of the effect, which is another one after a fresh replay. */
  readonly #steps = new Map<string, Step>()
  readonly sent: Sent[] = []

  #of(key: string): Step {
    const known = this.#steps.get(key) ?? { ran: new Set(), resolvedUnder: null, value: null }
    this.#steps.set(key, known)
    return known
  }

  /** The function of the step begins. A worker that lost its lease cannot know what was recorded after it. */
  begins(checker: Checker, id: string, key: string, fence: number): void {
    const { resolvedUnder } = this.#of(key)
    if (resolvedUnder !== null && resolvedUnder < fence)
      checker.violate('I12', `step ${key} ran again in run ${fence}; run ${resolvedUnder} had its result`, id)
  }

  ran(key: string, value: unknown): void {
    this.#of(key).ran.add(JSON.stringify(value))
  }

  resolves(checker: Checker, id: string, key: string, fence: number, value: unknown): void {
    const step = this.#of(key)
    const text = JSON.stringify(value)
    if (!step.ran.has(text))
      checker.violate('I11', `step ${key} resolved with ${text}, which no run of it returned`, id)
    if (step.value !== null && step.value !== text)
      checker.violate('I12', `step ${key} resolved with ${step.value} and later with ${text}`, id)
    if (step.resolvedUnder !== null && step.resolvedUnder !== fence)
      checker.marks.hit('a recorded step was found again')
    step.value = text
    step.resolvedUnder = Math.min(step.resolvedUnder ?? fence, fence)
  }

  /** A wait for a signal resolved with this. */
  takes(checker: Checker, id: string, value: unknown): void {
    const text = JSON.stringify(value)
    if (!this.sent.some((sent) => sent.task === id && sent.value === text))
      checker.violate('I13', `task ${id} took the signal ${text}, which nobody sent`, id)
    checker.marks.hit('a signal was taken')
  }

  /** At the end: what was sent and accepted is in the journal, once. */
  checkSent(checker: Checker, tasks: readonly TaskRecord[]): void {
    const there = new Map(tasks.map((task) => [task.id, task]))
    for (const { task: id, id: signalId, outcome, generation } of this.sent) {
      const task = there.get(id)
      if (task === undefined || task.generation !== generation) continue
      const kept = task.journal.filter((entry) => entry.kind === 'signal' && entry.signalId === signalId).length
      if (kept > 1) checker.violate('I6', `task ${id} has kept the signal ${signalId} ${kept} times`, id)
      if (outcome === 'ok' && kept === 0) checker.violate('I1', `task ${id} has lost the signal ${signalId}`, id)
      if (outcome === 'refused' && kept === 1)
        checker.violate('I15', `task ${id} has kept the signal ${signalId}, which was refused`, id)
    }
    for (const task of tasks) {
      for (const [name, state] of readJournal(task.journal).steps) {
        if (state.kind !== 'step') continue
        const key = task.generation === 0 ? `${task.id}:${name}` : `${task.id}:${task.generation}:${name}`
        if (state.entry.value !== undefined && !this.#of(key).ran.has(state.entry.value))
          checker.violate(
            'I11',
            `step ${key} has the result ${state.entry.value}, which no run of it returned`,
            task.id,
          )
      }
    }
  }
}
