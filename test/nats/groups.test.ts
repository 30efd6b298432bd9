/** Grouped tasks on NATS: lines of groups that hide no other, without a consumer for each. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { expect, onTestFinished, test } from 'vitest'
import type { ClaimLimits } from '../../src/core/flow/group-turns.ts'
import { complete } from '../../src/core/machine.ts'
import { openNats } from '../../src/store/nats/store.ts'
import { idOf, task, want } from '../../src/testing/conformance/build.ts'
import { begin, onNats } from './setup.ts'

const inTurns = (perGroup: number | null): ClaimLimits => ({
  concurrency: null,
  notAfter: null,
  turns: { perGroup, after: null, mostEach: 100, without: [], only: null, passed: [] },
})

onNats('groups', (url) => {
  /** Two processes on a new bucket, and what its streams say. */
  const open = async () => {
    const { bucket } = begin(url)
    const [one, other] = [await openNats(`${url}/${bucket}`, { create: true }), await openNats(`${url}/${bucket}`)]
    onTestFinished(async () => {
      await one.close()
      await other.close()
    })
    const nc = await connectNats({ servers: url })
    onTestFinished(() => nc.close())
    const jsm = await jetstreamManager(nc)
    const consumers = async (): Promise<number> => {
      const infos = ['READY', 'LATER'].map((name) => jsm.streams.info(`HOLDFAST_${bucket}_${name}`))
      return (await Promise.all(infos)).reduce((sum, { state }) => sum + state.consumer_count, 0)
    }
    const { at: now } = await one.now()
    const fresh = (n: number, group: string) => {
      const at = Math.floor(now) - 1_000
      return { task: task(n, { group, createdAt: at, updatedAt: at, availableAt: at }) }
    }
    return { one, other, consumers, fresh }
  }

  test('2,000 tasks of one group hide none of the others, and no group has a consumer', async () => {
    const { one, other, consumers, fresh } = await open()
    await one.insert(
      Array.from({ length: 2_000 }, (_, n) => fresh(n, 'big')),
      { now: null },
    )
    await one.insert(
      Array.from({ length: 12 }, (_, n) => fresh(5_000 + n, `small ${n % 4}`)),
      { now: null },
    )
    const before = await consumers()
    for (const [n, store] of [one, other, one, other].entries()) {
      // An announcement may be on its way.
      await expect
        .poll(async () => {
          const { leased } = await store.claim(
            want({ limits: inTurns(null), limit: 5, now: null, leaseTtl: 30_000, op: `op-${n}-${Math.random()}` }),
          )
          await store.commit(
            leased.map((held) =>
              complete(held, { token: held.lease!.token }, { text: '1', encoding: 'json' }, held.lease!.claimedAt),
            ),
          )
          return new Set(leased.map(({ group }) => group)).size
        })
        .toBe(n < 3 ? 5 : 1)
    }
    expect(await consumers()).toBe(before)
  })

  test('two processes together keep the limit of a group, and a lapsed lease of one is reported to the other', async () => {
    const { one, other, fresh } = await open()
    await one.insert([fresh(1, 'a'), fresh(2, 'a')], { now: null })
    const look = (store: typeof one, op: string) =>
      store.claim(want({ limits: inTurns(1), now: null, leaseTtl: 1_500, op }))
    const { leased } = await look(one, 'one')
    expect(leased).toHaveLength(1)
    let looks = 0
    await expect
      .poll(
        async () => {
          const found = await look(other, `other-${looks++}`)
          expect(found.leased).toEqual([])
          return found.due.map(({ id }) => id)
        },
        { timeout: 30_000, interval: 100 },
      )
      .toEqual([leased[0]!.id])
    expect([idOf(1), idOf(2)]).toContain(leased[0]!.id)
  })
})
