/** Submits two tasks, one that expires, tells what it was told, and stays until it is killed. */
import { open, planOf, say } from './child.ts'

const { file, ttl } = planOf<{ file: string; ttl: string }>()
const client = await open(file)
const mortal = await client.submit('quick', null, { ttl })
const immortal = await client.submit('quick', null)
say('submitted', { mortal: mortal.id, expiresAt: mortal.expiresAt, immortal: immortal.id })
setInterval(() => {}, 60_000)
