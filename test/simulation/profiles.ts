/** Which simulated store belongs to which profile. */

import type { Program } from './bundle.ts'
import type { Checker } from './checker/checker.ts'
import type { Machine } from './host.ts'
import type { Kernel } from './kernel.ts'
import type { Marks } from './marks.ts'
import { nats } from './nats.ts'
import { s3 } from './s3.ts'
import type { Profile, Settings } from './settings.ts'
import type { SimulatedStore } from './simulated-store.ts'
import type { Trace } from './trace.ts'
import { transactional } from './transactional.ts'
import type { Wire } from './wire.ts'

export interface StoreParts {
  readonly kernel: Kernel
  readonly program: Program
  readonly settings: Settings
  readonly wire: Wire
  readonly checker: Checker
  readonly marks: Marks
  readonly trace: Trace
  /** The server's. */
  readonly machine: Machine
  /** Where there are several. */
  readonly name?: string
}

const STORES: Readonly<Record<Profile, (parts: StoreParts) => SimulatedStore>> = {
  transactional,
  s3,
  nats,
  move: transactional,
}

export const openSimulated = (parts: StoreParts): SimulatedStore => STORES[parts.settings.profile](parts)
