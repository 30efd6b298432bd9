/**
 * A key-value bucket of NATS in memory: revisions are sequences of the stream, replies carry the server's time, connections break. The real bucket, clock
 * and engine run over it. Hints are keys here, as on S3: the ready messages of NATS are not simulated.
 */

import type { StreamInfo } from '@nats-io/jetstream'
import { idOfTaskKey, TASKS } from '../../src/store/kv/records/names.ts'
import { violations } from '../kv/invariants.ts'
import type { Host } from './host.ts'
import type { StoreParts } from './profiles.ts'
import type { SimulatedStore } from './simulated-store.ts'
import { Statuses } from './statuses.ts'
import { wholeTask } from './whole-task.ts'

const BUCKET = 'simulated'
const MAX_PAYLOAD = 1_048_576

interface Stored {
  readonly bytes: Buffer
  readonly sequence: number
}

export const nats = ({ settings, wire, checker, machine, marks }: StoreParts): SimulatedStore => {
  /** By subject. */
  const messages = new Map<string, Stored>()
  const subjectOf = new Map<string, string>()
  let sequence = 0

  const textOf = (key: string): string | undefined => {
    const subject = subjectOf.get(key)
    return subject === undefined ? undefined : messages.get(subject)?.bytes.toString()
  }
  const observe = (key: string, text: string | null): void => {
    if (!key.startsWith(TASKS)) return
    checker.saw(idOfTaskKey(key), text === null ? null : wholeTask(key, text, textOf), machine.wall())
  }

  const open = async (host: Host) => {
    const { HoldfastError, NatsBucket, NatsClock, NatsContact, NatsSubjects, KvStore } = host.holdfast
    const subjects = new NatsSubjects(BUCKET)
    /** An error of JetStream's API. */
    const refused = (code: number, description: string): Error =>
      Object.assign(new Error(description), { code, status: 400 })
    const ask = <T>(name: string, what: string, apply: () => T): Promise<T> =>
      wire.call({
        host,
        name,
        what,
        failed: (why) => new Error(`${name}: ${why}`),
        apply: async () => apply(),
      })
    const keyOf = (subject: string): string => subjects.toKey(subject)
    const requests = {
      write: (subject: string, data: string | Uint8Array, { last }: { readonly last?: number } = {}) =>
        ask('write', `${subject} ${last ?? ''} ${Buffer.from(data).toString()}`, () => {
          const found = messages.get(subject)
          if (last !== undefined && (found?.sequence ?? 0) !== last) {
            marks.hit('a wrong last sequence')
            // Newer servers use the second number.
            throw refused(sequence % 2 === 0 ? 10_071 : 10_164, `wrong last sequence: ${found?.sequence ?? 0}`)
          }
          const bytes = Buffer.from(data)
          messages.set(subject, { bytes, sequence: ++sequence })
          subjectOf.set(keyOf(subject), subject)
          observe(keyOf(subject), bytes.toString())
          return sequence
        }),
      last: (_stream: string, subject: string) =>
        ask('get', subject, () => {
          const found = messages.get(subject)
          if (found === undefined) throw refused(10_037, 'no message found')
          return { text: found.bytes.toString(), sequence: found.sequence }
        }),
    }
    const matching = (filter: string): string[] =>
      filter.endsWith('>')
        ? [...messages.keys()].filter((subject) => subject.startsWith(filter.slice(0, -1)))
        : [...messages.keys()].filter((subject) => subject === filter)
    const streams = {
      purge: (_stream: string, { filter }: { readonly filter: string }) =>
        ask('purge', filter, () => {
          for (const subject of matching(filter)) {
            messages.delete(subject)
            subjectOf.delete(keyOf(subject))
            observe(keyOf(subject), null)
          }
        }),
    }
    const info = () => ask('info', '', () => ({ ts: new Date(machine.wall()).toISOString() }) as unknown as StreamInfo)
    const statuses = new Statuses(host, wire)
    const nc = {
      info: { max_payload: MAX_PAYLOAD },
      status: () => statuses.stream(),
      flush: async () => {},
      close: async () => {},
    }
    const subjectsIn = (_stream: string, filter: string): Promise<string[]> =>
      ask('subjects', filter, () => matching(filter))
    const connected = { nc, requests, jsm: { streams }, subjectsIn } as never
    const clock = new NatsClock(connected, subjects, info)
    const contact = new NatsContact(connected, 'nats://simulated')
    const checkIdentity = async (): Promise<void> => {}
    const bucket = new NatsBucket('nats://simulated', {
      connected,
      subjects,
      clock,
      contact,
      checkIdentity,
      wrote: () => {},
    })
    try {
      await clock.ask()
    } catch (error) {
      throw new HoldfastError('STORE_UNAVAILABLE', String(error))
    }
    return new KvStore(bucket, { capabilities: [], leaseTtl: 5_000 })
  }

  return {
    prepare: async () => {},
    open,
    now: () => machine.wall(),
    recoversWithin: () => 2 * settings.leaseTtl + 150_000,
    async all() {
      return [...subjectOf.keys()].flatMap((key) => {
        if (!key.startsWith(TASKS)) return []
        const task = wholeTask(key, textOf(key)!, textOf)
        return task === null ? [] : [task]
      })
    },
    async broken() {
      const entries = [...subjectOf.keys()].map((key) => [key, { value: textOf(key)!, mark: '' }])
      // A coalesce key passes on from task to task; ended tasks have no index here.
      return violations({ entries: new Map(entries as never) } as never).filter(
        (what) => !what.includes('coalesce:') && !what.includes('not in the index'),
      )
    },
  }
}
