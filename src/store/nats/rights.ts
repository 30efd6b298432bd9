/** Finds out which permissions this user lacks, with requests that change nothing. */
import { randomUUID } from 'node:crypto'
import type { Fact } from '../../core/observe/diagnosis.ts'
import type { Connected } from './connection/connection.ts'
import { apiSubject, newInbox, writeSubject } from './connection/prefixes.ts'
import type { Subjects } from './subjects.ts'

interface Probe {
  /** As written in a list of permissions. */
  readonly right: string
  readonly subject: string
  readonly body?: string
  readonly isWrite?: boolean
}

/** The name of a message or consumer that does not exist. */
const NOTHING = 'doctor'
const NO_SEQUENCE = Number.MAX_SAFE_INTEGER

const publishes = ({ nc }: Connected, subjects: Subjects): readonly Probe[] => {
  const { bucket, kv, ready, later, all } = subjects
  const api = (call: string, own: Omit<Probe, 'right' | 'subject'> & { readonly of?: string } = {}): Probe => {
    const { of = '', ...more } = own
    const subject = apiSubject(nc, call)
    return { right: subject + (of === '' ? '' : '.>'), subject: subject + of, ...more }
  }
  const consumer = { of: `.${NOTHING}`, body: '{}' }
  const last = JSON.stringify({ last_by_subj: `${NOTHING}.${NOTHING}` })
  // Without a filter the whole stream would be purged.
  const purge = (stream: string, folder: string): Probe =>
    api(`STREAM.PURGE.${stream}`, {
      body: JSON.stringify({ filter: folder.replace('>', `${NOTHING}.${randomUUID()}`) }),
    })
  return [
    { right: writeSubject(nc, all.kv), subject: writeSubject(nc, subjects.ofKey(NOTHING)), isWrite: true },
    ...[all.ready, all.later].map((folder) => ({
      right: `holdfast.${bucket}.>`,
      subject: folder.replace('>', `${NOTHING}.${NOTHING}`),
      isWrite: true,
    })),
    { right: `holdfast.${bucket}.>`, subject: subjects.wake, body: NOTHING },
    { right: `$JS.ACK.${ready}.>`, subject: `$JS.ACK.${ready}.${NOTHING}.1.1.1.1.0` },
    ...[kv, ready, later].map((stream) => api(`STREAM.INFO.${stream}`)),
    ...[kv, ready, later].map((stream) => api(`STREAM.MSG.GET.${stream}`, { body: last })),
    purge(kv, all.kv),
    purge(ready, all.ready),
    api(`STREAM.MSG.DELETE.${later}`, { body: JSON.stringify({ seq: NO_SEQUENCE }) }),
    api(`CONSUMER.CREATE.${ready}`, consumer),
    // Its consumers are unnamed.
    api(`CONSUMER.CREATE.${later}`, { body: '{}' }),
    ...[ready, later].flatMap((stream) => [
      api(`CONSUMER.INFO.${stream}`, consumer),
      api(`CONSUMER.MSG.NEXT.${stream}`, consumer),
    ]),
    api(`CONSUMER.DELETE.${later}`, consumer),
  ]
}

const subscriptions = ({ nc }: Connected, subjects: Subjects): readonly Probe[] => {
  const inbox = newInbox(nc)
  return [
    { right: `${inbox.slice(0, inbox.lastIndexOf('.'))}.>`, subject: inbox },
    { right: subjects.wake, subject: subjects.wake },
  ]
}

interface Violation {
  readonly type: string
  readonly error?: Error & { readonly operation?: string; readonly subject?: string }
}

/** The missing permissions: `publish to …`, `subscribe to …`. */
export const missingRights = async (connected: Connected, subjects: Subjects): Promise<readonly string[]> => {
  const { nc, newHeaders } = connected
  const refused = new Set<string>()
  const statuses = nc.status() as AsyncIterable<Violation> & { stop(): void }
  const watch = async (): Promise<void> => {
    for await (const { error } of statuses)
      if (error?.name === 'PermissionViolationError') refused.add(`${error.operation} ${error.subject}`)
  }
  void watch()
  const toPublish = publishes(connected, subjects)
  for (const { subject, body = '', isWrite = false } of toPublish) {
    const headers = newHeaders()
    // A stream rejects a message that expects another stream.
    if (isWrite) headers.set('Nats-Expected-Stream', NOTHING)
    nc.publish(subject, body, isWrite ? { headers } : {})
  }
  const toSubscribe = subscriptions(connected, subjects)
  const subscribed = toSubscribe.map(({ subject }) => nc.subscribe(subject, { callback: () => {} }))
  // Violations are reported before the flush is answered.
  await nc.flush()
  await new Promise((done) => setImmediate(done))
  for (const subscription of subscribed) if (!subscription.isClosed()) subscription.unsubscribe()
  statuses.stop()
  return [
    ...new Set([
      ...toPublish.filter(({ subject }) => refused.has(`publish ${subject}`)).map(({ right }) => `publish to ${right}`),
      ...toSubscribe
        .filter(({ subject }) => refused.has(`subscription ${subject}`))
        .map(({ right }) => `subscribe to ${right}`),
    ]),
  ]
}

export const rightsFact = async (connected: Connected, subjects: Subjects): Promise<Fact> => ({
  check: 'permissions',
  who: 'this user',
  missing: await missingRights(connected, subjects),
  how: "Add it to the user's permissions: docs/stores/nats.md has them to paste.",
})
