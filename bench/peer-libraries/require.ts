/** Loads peers from bench/peers, a separate package that is not installed when the types are checked. */
import { createRequire } from 'node:module'

export const requirePeer = createRequire(new URL('../peers/package.json', import.meta.url)) as (name: string) => unknown
