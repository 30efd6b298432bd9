/** The proof is repeated now and then, and a server that no longer passes gets no more work. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { parseAddress } from '../../src/store/s3/address.ts'
import { Disproof, type ProvedKeyValue } from '../../src/store/s3/proof.ts'
import { ProofRecord } from '../../src/store/s3/proof-record.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { KeyValueMap, MemoryKeyValue } from '../kv/places/memory-key-value.ts'

const HOUR = 3_600_000
let buckets = 0

/** One bucket; `server` decides what a proof finds. */
const begin = () => {
  const clock = new FakeClock()
  const map = new KeyValueMap()
  const place = parseAddress(`s3://bucket-${++buckets}`)
  const server = { isTrusted: true, proofs: 0 }
  const open = () => {
    const kv: ProvedKeyValue = Object.assign(new MemoryKeyValue(map, { wall: () => clock.wall() }), {
      etagsAreBare: false,
    })
    const proving = async () => {
      server.proofs++
      if (!server.isTrusted) throw new Disproof('this server accepts 15 of 16 writers at once')
    }
    return { kv, proof: new ProofRecord(kv, place, { proving, mono: () => clock.mono() }) }
  }
  /** As if the proof had been given earlier: running a worker for a day would take too long. */
  const age = (by: number): void => {
    for (const [key, { value, mark }] of map.entries) {
      if (!key.startsWith('proof/')) continue
      const proved = JSON.parse(value) as { at: number }
      map.entries.set(key, { value: JSON.stringify({ ...proved, at: proved.at - by }), mark })
    }
  }
  const records = () => [...map.entries.keys()].filter((key) => key.startsWith('proof/'))
  return { clock, server, open, age, records }
}

test('a day is trusted, then the first working process proves it again, for all others', async () => {
  const { clock, server, open } = begin()
  const [{ proof }, { proof: other }] = [open(), open()]
  await proof.ensure()
  expect(server.proofs).toBe(1)
  for (let hours = 0; hours < 23; hours++) {
    await clock.advance(HOUR)
    await Promise.all([proof.check(), other.check()])
  }
  expect(server.proofs).toBe(1)
  for (let hours = 0; hours < 3; hours++) {
    await clock.advance(HOUR)
    await proof.check()
    await other.check()
  }
  expect(server.proofs).toBe(2)
})

test('a worker stops with STORE_UNSAFE when the server no longer honours conditions, and so do others within the hour', async () => {
  const { clock, server, open, age, records } = begin()
  const work = async () => {
    const { kv, proof } = open()
    if (!(await proof.read())) await proof.ensure()
    const timers = { mono: () => clock.mono(), after: (delay: number, tick: () => void) => clock.after(delay, tick) }
    const store = new KvStore(kv, { capabilities: [], leaseTtl: 30_000, timers, checkIdentity: () => proof.check() })
    const client = await connect(store, { clock, random: clock.random, logger: silentLogger })
    onTestFinished(() => client.close())
    const worker = client.worker({ pollInterval: '1m' }).handle('a', async () => null)
    return {
      client,
      ended: worker.run().then(
        () => null,
        (error: unknown) => error,
      ),
    }
  }
  const [one, other] = [await work(), await work()]
  server.isTrusted = false
  age(25 * HOUR)
  let end: unknown = 'works'
  void one.ended.then((error) => (end = error))
  for (let minutes = 0; minutes < 70 && end === 'works'; minutes++) await clock.advance(60_000)
  expect(end).toMatchObject({ code: 'STORE_UNSAFE', message: expect.stringContaining('15 of 16') })
  await expect(one.client.submit('a', null)).rejects.toMatchObject({ code: 'STORE_UNSAFE' })
  expect(records()).toEqual([])
  for (let minutes = 0; minutes < 70; minutes++) await clock.advance(60_000)
  expect(await other.ended).toMatchObject({ code: 'STORE_UNSAFE' })
  // No new client can start working there.
  await expect(work()).rejects.toMatchObject({ code: 'INVALID_OPTION' })
})
