/**
 * The three streams of a store: the bucket, the ready messages, and hints for later. They are created, or checked before use.
 */
import type { StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { HoldfastError } from '../../core/errors.ts'
import type { Connected } from './connection/connection.ts'
import { isStreamNotFound } from './connection/errors.ts'
import type { Subjects } from './subjects.ts'

/** Several processes may announce the same hint when its time comes. Within this time the server keeps only one message. */
const DUPLICATES = 30_000
const NANOSECONDS = 1_000_000

type Wanted = Pick<StreamConfig, 'name' | 'subjects' | 'retention'> & Partial<StreamConfig>

const wantedStreams = (subjects: Subjects, replicas: number): readonly Wanted[] => {
  const { kv, ready, later } = subjects.all
  const safe = { storage: 'file', discard: 'new', num_replicas: replicas, max_age: 0 } as const
  return [
    {
      ...safe,
      name: subjects.ready,
      subjects: [ready],
      retention: 'workqueue',
      duplicate_window: DUPLICATES * NANOSECONDS,
    },
    { ...safe, name: subjects.later, subjects: [later], retention: 'limits' },
    // Created last: where there is a bucket, the other streams exist.
    {
      ...safe,
      name: subjects.kv,
      subjects: [kv],
      retention: 'limits',
      // The settings of every KV bucket, so that `nats kv` can read it. But reads come from the leader.
      max_msgs_per_subject: 1,
      allow_rollup_hdrs: true,
      deny_delete: true,
      allow_direct: false,
    },
  ]
}

const infoOf = async ({ jsm }: Connected, name: string): Promise<StreamInfo | null> => {
  try {
    return await jsm.streams.info(name)
  } catch (error) {
    if (isStreamNotFound(error)) return null
    throw error
  }
}

/** Settings that would lose tasks, and how to change them. */
export const faultsOf = (config: StreamConfig): string[] => {
  const faults: string[] = []
  const persistence = (config as { readonly persist_mode?: string }).persist_mode
  if (config.max_age > 0) faults.push('has a TTL (max_age): tasks would vanish')
  if (config.storage !== 'file') faults.push('keeps its data in memory: use file storage')
  if (config.discard !== 'new')
    faults.push('has discard=old: a full bucket would drop its oldest tasks; use discard=new')
  if (persistence === 'async') faults.push('has persist_mode async: it acknowledges what is not written yet')
  if (config.retention === 'interest') faults.push('has retention=interest: messages without a consumer are dropped')
  if (config.max_msgs > 0 && config.discard !== 'new') faults.push('has a limit of messages')
  return faults
}

const check = (config: StreamConfig, isBucket: boolean): void => {
  const faults = faultsOf(config)
  if (isBucket && config.allow_direct) faults.push('has allow_direct: reads could be stale; set it to false')
  if (isBucket && config.mirror) faults.push('is a mirror of another: connect to that one')
  if (faults.length === 0) return
  throw new HoldfastError('INVALID_OPTION', `stream ${config.name} ${faults.join('; ')}`, { field: 'bucket' })
}

/** `isNew`: the streams were just created. `replicas` is that of the bucket. */
export const prepareStreams = async (
  connected: Connected,
  subjects: Subjects,
  { create, replicas }: { readonly create: boolean; readonly replicas: number | undefined },
): Promise<{ readonly isNew: boolean; readonly replicas: number }> => {
  const kv = await infoOf(connected, subjects.kv)
  if (kv === null && !create)
    throw new HoldfastError(
      'STORE_NOT_FOUND',
      `there is no bucket ${subjects.bucket}: run \`holdfast init URL\`, or connect with create: true`,
    )
  if (kv !== null) check(kv.config, true)
  const isEmpty = kv === null || kv.state.messages === 0
  const wanted = wantedStreams(subjects, replicas ?? kv?.config.num_replicas ?? 1)
  for (const stream of wanted) {
    const found = stream.name === subjects.kv ? kv : await infoOf(connected, stream.name)
    if (found !== null) check(found.config, stream.name === subjects.kv)
    else if (isEmpty && create) await connected.jsm.streams.add(stream)
    else
      throw new HoldfastError(
        'STORE_CORRUPT',
        `bucket ${subjects.bucket} exists, but its stream ${stream.name} is missing: restore it from a backup`,
      )
  }
  return { isNew: isEmpty, replicas: kv?.config.num_replicas ?? replicas ?? 1 }
}

interface Varz {
  readonly jetstream?: { readonly config?: { readonly sync_always?: boolean } }
}

/** Strong: a power cut loses nothing that was acknowledged. Weak: it may lose up to two minutes. */
export const durabilityOf = async (
  replicas: number,
  monitor: string | undefined,
): Promise<{ readonly isStrong: boolean; readonly why: string }> => {
  if (replicas >= 3) return { isStrong: true, why: `${replicas} replicas` }
  if (monitor === undefined)
    return {
      isStrong: false,
      why: `${replicas === 1 ? 'one replica' : `${replicas} replicas`}, and without ?monitor=http://host:8222 it is unknown whether the server has sync_interval: always`,
    }
  const varz = await fetch(`${monitor}/varz`).then(
    (answer) => answer.json() as Promise<Varz>,
    () => null,
  )
  if (varz === null) return { isStrong: false, why: `one replica, and ${monitor} does not answer` }
  return varz.jetstream?.config?.sync_always
    ? { isStrong: true, why: 'sync_interval: always' }
    : { isStrong: false, why: 'one replica without sync_interval: always' }
}
