/** The three streams of a store: the truth, the bells, and what waits for later. Made, or checked before they are trusted. */
import type { StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { HoldfastError } from '../../core/errors.ts'
import type { Connected } from './connection.ts'
import { isStreamNotFound } from './errors.ts'
import type { Subjects } from './subjects.ts'

/** A bell that is rung twice for one hint by two who moved it from later is one bell: they do so within moments. */
const DUPLICATES = 30_000
const NANOSECONDS = 1_000_000

type Wanted = Pick<StreamConfig, 'name' | 'subjects' | 'retention'> & Partial<StreamConfig>

const wantedStreams = (subjects: Subjects, replicas: number): readonly Wanted[] => {
  const { truth, bells, later } = subjects.all
  const safe = { storage: 'file', discard: 'new', num_replicas: replicas, max_age: 0 } as const
  return [
    {
      ...safe,
      name: subjects.bells,
      subjects: [bells],
      retention: 'workqueue',
      duplicate_window: DUPLICATES * NANOSECONDS,
    },
    { ...safe, name: subjects.later, subjects: [later], retention: 'limits' },
    // The last: where there is a bucket, there is all of it.
    {
      ...safe,
      name: subjects.truth,
      subjects: [truth],
      retention: 'limits',
      // As every KV bucket has it, so that `nats kv` can read this one; but reads come from the leader.
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

/** What would lose tasks, and how to change it. */
export const faultsOf = (config: StreamConfig): string[] => {
  const faults: string[] = []
  const persistence = (config as { readonly persist_mode?: string }).persist_mode
  if (config.max_age > 0) faults.push('has a TTL (max_age): tasks would vanish')
  if (config.storage !== 'file') faults.push('keeps its data in memory: use file storage')
  if (config.discard !== 'new')
    faults.push('has discard=old: a full bucket would drop its oldest tasks; use discard=new')
  if (persistence === 'async') faults.push('has persist_mode async: it acknowledges what is not written yet')
  if (config.retention === 'interest') faults.push('keeps messages only while somebody is interested')
  if (config.max_msgs > 0 && config.discard !== 'new') faults.push('has a limit of messages')
  return faults
}

const check = (config: StreamConfig, isTruth: boolean): void => {
  const faults = faultsOf(config)
  if (isTruth && config.allow_direct) faults.push('has allow_direct: reads could be stale; set it to false')
  if (isTruth && config.mirror) faults.push('is a mirror of another: connect to that one')
  if (faults.length === 0) return
  throw new HoldfastError('INVALID_OPTION', `stream ${config.name} ${faults.join('; ')}`, { field: 'bucket' })
}

/** `true`: they were made just now. The number of replicas is that of the bucket. */
export const prepareStreams = async (
  connected: Connected,
  subjects: Subjects,
  { create, replicas }: { readonly create: boolean; readonly replicas: number | undefined },
): Promise<{ readonly isNew: boolean; readonly replicas: number }> => {
  const truth = await infoOf(connected, subjects.truth)
  if (truth === null && !create)
    throw new HoldfastError(
      'STORE_NOT_FOUND',
      `there is no bucket ${subjects.bucket}: run \`holdfast init URL\`, or connect with create: true`,
    )
  if (truth !== null) check(truth.config, true)
  const isEmpty = truth === null || truth.state.messages === 0
  const wanted = wantedStreams(subjects, replicas ?? truth?.config.num_replicas ?? 1)
  for (const stream of wanted) {
    const found = stream.name === subjects.truth ? truth : await infoOf(connected, stream.name)
    if (found !== null) check(found.config, stream.name === subjects.truth)
    else if (isEmpty && create) await connected.jsm.streams.add(stream)
    else
      throw new HoldfastError(
        'STORE_CORRUPT',
        `bucket ${subjects.bucket} is there, but stream ${stream.name}, which says what is to be done, is not: restore it`,
      )
  }
  return { isNew: isEmpty, replicas: truth?.config.num_replicas ?? replicas ?? 1 }
}

interface Varz {
  readonly jetstream?: { readonly config?: { readonly sync_always?: boolean } }
}

/** What a power cut takes with it: nothing that was acknowledged, or up to two minutes of it. */
export const durabilityOf = async (
  replicas: number,
  monitor: string | undefined,
): Promise<{ readonly isStrong: boolean; readonly why: string }> => {
  if (replicas >= 3) return { isStrong: true, why: `${replicas} replicas` }
  if (monitor === undefined)
    return {
      isStrong: false,
      why: `${replicas === 1 ? 'one replica' : `${replicas} replicas`}, and without ?monitor=http://host:8222 nobody can say whether the server has sync_interval: always`,
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
