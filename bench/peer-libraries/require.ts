/** Peers are loaded from bench/peers, a package of its own: they are not there when the types are checked. */
import { createRequire } from 'node:module'

export const requirePeer = createRequire(new URL('../peers/package.json', import.meta.url)) as (name: string) => unknown
