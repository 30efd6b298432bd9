/** Empty stores on one NATS server: a bucket each, which is removed when its store is closed. */
import { randomBytes } from 'node:crypto'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { type NatsOptions, openNats } from '../../src/store/nats/store.ts'
import type { Store } from '../../src/store/store.ts'

/** A name that nobody else has. */
export const freshBucket = (): string => `test-${randomBytes(6).toString('hex')}`

export const removeBucket = async (url: string, bucket: string): Promise<void> => {
  const nc = await connect({ servers: url.replace('nats://', '').split(',') })
  try {
    const jsm = await jetstreamManager(nc)
    for (const stream of [`KV_${bucket}`, `HOLDFAST_${bucket}_READY`, `HOLDFAST_${bucket}_LATER`])
      await jsm.streams.delete(stream).catch(() => {})
  } finally {
    await nc.close()
  }
}

export const emptyBuckets =
  (url: string, options: NatsOptions = {}): (() => Promise<Store>) =>
  async () => {
    const bucket = freshBucket()
    const store = await openNats(`${url}/${bucket}`, { ...options, create: true })
    const close = store.close.bind(store)
    let isRemoved = false
    store.close = async () => {
      await close()
      if (!isRemoved) await removeBucket(url, bucket)
      isRemoved = true
    }
    return store
  }
