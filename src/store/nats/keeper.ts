/** Heartbeats from a thread with a connection of its own: a busy event loop loses no leases. */
import { Worker } from 'node:worker_threads'
import { type PackedLeases, packLeases } from '../packed-leases.ts'
import type { Keeper, KeeperOptions, KeeperReport } from '../store.ts'
import type { NatsConnectionOptions } from './connection.ts'

export interface KeeperPlace {
  readonly url: string
  readonly options: NatsConnectionOptions
}

export interface KeeperThreadData extends KeeperPlace {
  readonly board: SharedArrayBuffer
  readonly leaseTtl: number
  readonly every: number
}

export type ToKeeper =
  | { readonly kind: 'hold'; readonly leases: PackedLeases }
  | { readonly kind: 'progress'; readonly slot: number; readonly progress: string }
  | { readonly kind: 'close' }

export interface FromKeeper {
  readonly results: readonly KeeperReport[]
  readonly renewedAt: number
}

export const startKeeper = (place: KeeperPlace, { board, leaseTtl, every, report }: KeeperOptions): Keeper => {
  // Beside this file, with its own ending: .ts in a checkout, .js in the package.
  const module = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)
  const data: KeeperThreadData = { ...place, board: board.memory, leaseTtl, every }
  const thread = new Worker(module, { workerData: data, name: 'holdfast-nats' })
  thread.on('message', ({ results, renewedAt }: FromKeeper) => report(results, renewedAt))
  // A thread that fails renews nothing: the holders' own deadlines tell them.
  thread.on('error', () => {})
  thread.unref()
  const post = (message: ToKeeper): void => thread.postMessage(message)
  return {
    hold: (leases) => post({ kind: 'hold', leases: packLeases(leases) }),
    progress: (slot, progress) => post({ kind: 'progress', slot, progress }),
    close: () => post({ kind: 'close' }),
  }
}
