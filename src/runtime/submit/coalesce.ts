/** A trigger joins the task that waits under its key, or makes one that takes the key. */
import { createHash } from 'node:crypto'
import {
  type Coalescing,
  coalesceKey,
  coalescingSubmission,
  joined,
  meeting,
  parseCoalesce,
} from '../../core/coalesce.ts'
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import { expire, hasOp } from '../../core/machine.ts'
import { Task } from '../../core/observe/task-view.ts'
import type { SubmitOptions } from '../../core/submission.ts'
import { applyChange, type Change, type Instant, type TaskRecord } from '../../core/task.ts'
import { fullJitter } from '../../core/values/jitter.ts'
import { encodePayload, type Payload } from '../../core/values/payload.ts'
import type { Committed, Inserted, Insertion } from '../../store/store.ts'
import { pause } from '../clock.ts'
import { checkSchema, withDefaults } from '../definition.ts'
import { newId } from '../ids.ts'
import { withPatience } from '../patience.ts'
import { actorOf, newOp, type Session } from '../session.ts'
import type { InTurn } from './in-turn.ts'
import type { SubmitItem } from './submitter.ts'

/** Inserts as every submit does; `stamped` makes the insertion for an instant. */
export type Insert = (stamped: (now: Instant) => Insertion) => Promise<Inserted>

/** One call of submit, however often it must be tried. */
interface Trigger {
  readonly key: string
  readonly op: string
  readonly wish: Coalescing
  /** The task that it makes when there is none to join. */
  made(now: Instant): Required<Pick<Insertion, 'task' | 'key'>>
}

/** Each conflict means that another trigger or a worker made progress, so a busy key needs many tries. */
const TRIES = 100
/** Writes whose reply was lost, one after the other. */
const UNCLEAR_TRIES = 5
const WAITS = { first: 5, longest: 250 }

export class Coalescer {
  readonly #session: Session
  readonly #insert: Insert
  readonly #turns: InTurn

  /** `turns`: shared with the other sessions of the client. */
  constructor(session: Session, insert: Insert, turns: InTurn) {
    this.#session = session
    this.#insert = insert
    this.#turns = turns
  }

  async submit({ definition, input, options: given }: SubmitItem): Promise<Task> {
    const { coalesce, ...options } = withDefaults({ options: this.#session.defaults }, given)
    const { type } = definition
    const wish = parseCoalesce(coalesce!, options)
    const key = coalesceKey(type, wish.key, digest)
    // Triggers of this client on one key do not compete, and are taken in the order in which they came.
    return this.#turns.run(key, async () => {
      await checkSchema(definition.input, input, 'input', 'INVALID_TASK')
      const payload = encodePayload(input, 'input', this.#session.maxPayload)
      return this.#settle(this.#triggerOf(type, payload, options, wish, key))
    })
  }

  #triggerOf(type: string, payload: Payload, options: SubmitOptions, wish: Coalescing, key: string): Trigger {
    const facts = { id: newId(), op: newOp(), by: this.#session.name, key }
    const made: Trigger['made'] = (now) => coalescingSubmission(type, payload, options, wish, { ...facts, now })
    // A mistake in the options shows before the store is asked.
    made(this.#session.time.now())
    return { key, op: facts.op, wish, made }
  }

  async #settle(trigger: Trigger): Promise<Task> {
    const { store, time, clock, random } = this.#session
    await time.freshen()
    let unclear: unknown[] = []
    for (let tries = 0; tries < TRIES; tries++) {
      // The first conflict is usually with a claim, and does not repeat.
      if (tries > 1) await pause(clock, fullJitter(WAITS, tries, random()))
      const found = await withPatience(this.#session, () => store.find(trigger.key))
      const task = found?.task ?? null
      const written = task === null ? null : this.#recognised(trigger, task)
      if (written !== null) return written
      try {
        const done = await this.#meet(trigger, task, found?.key.taskId)
        if (done !== null) return done
        unclear = []
      } catch (error) {
        if (!isContactLost(error) || unclear.push(error) >= UNCLEAR_TRIES) throw error
      }
    }
    throw new HoldfastError('STORE_CONFLICT', `coalesce key '${trigger.key}' changed during each of ${TRIES} tries`, {
      key: trigger.key,
    })
  }

  /** What an earlier try has written, although its reply was lost; null: nothing in this task. */
  #recognised({ op }: Trigger, task: TaskRecord): Task | null {
    if (hasOp(task, op, ['amend'])) return new Task(task, false, true)
    if (task.history[0]?.op !== op) return null
    this.#session.events.submitted(task)
    return new Task(task)
  }

  /** null: the key must be read again. */
  async #meet(trigger: Trigger, task: TaskRecord | null, holder: string | undefined): Promise<Task | null> {
    const actor = actorOf(this.#session, trigger.op)
    const met = meeting(task, actor.now)
    if (task === null || met === 'replace') return this.#create(trigger, holder)
    if (met === 'expire') {
      await this.#commit(task, expire(task, actorOf(this.#session)))
      return null
    }
    const change = joined(task, actor, trigger.wish, trigger.made(actor.now).task)
    if (change === null) return new Task(task, false, true)
    return (await this.#commit(task, change)) === 'written' ? new Task(applyChange(task, change), false, true) : null
  }

  async #commit(task: TaskRecord, change: Change): Promise<Committed> {
    const [committed] = await this.#session.store.commit([change])
    if (committed === 'written') this.#session.events.moved(task, change)
    return committed!
  }

  async #create(trigger: Trigger, replaces: string | undefined): Promise<Task | null> {
    let made: TaskRecord | null = null
    const inserted = await this.#insert((now) => {
      const insertion = trigger.made(now)
      made = insertion.task
      return replaces === undefined ? insertion : { ...insertion, replaces }
    })
    if (inserted.outcome !== 'created') return inserted.task === null ? null : this.#recognised(trigger, inserted.task)
    this.#session.events.submitted(made!)
    return new Task(made!)
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
