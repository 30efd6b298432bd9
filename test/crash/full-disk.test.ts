/** A disk that is full or read-only: STORE_FULL and STORE_READ_ONLY, nothing acknowledged lost, and work goes on when there is room. */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { connect, type HoldfastError, isHoldfastError, silentLogger, type Task } from '../../src/index.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { planted } from './planted.ts'
import { cleanUp, folder, until } from './processes.ts'
import { report } from './seed.ts'

cleanUp()

const SIZE = 12 * 1024 * 1024
const ROUNDS = 12
const disk = join(folder(), 'disk')
mkdirSync(disk)

const run = (command: string, ...given: string[]): string | null => {
  const ran = spawnSync(command, given, { encoding: 'utf8' })
  return ran.status === 0 ? null : (ran.error?.message ?? ran.stderr.trim())
}
const whyNoDisk = run('mount', '-t', 'tmpfs', '-o', `size=${SIZE}`, 'holdfast-test', disk)
if (whyNoDisk !== null) report(`full disk: skipped, because a small disk cannot be mounted here: ${whyNoDisk}`)
afterAll(() => {
  if (whyNoDisk === null) run('umount', '-l', disk)
})

/** To the last block. */
const fillUp = (ballast: string): void => {
  const opened = openSync(ballast, 'w')
  try {
    for (;;) writeSync(opened, Buffer.alloc(4_096))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(opened)
  }
}

const integrityOf = (file: string): unknown => {
  const db = new DatabaseSync(file)
  try {
    return Object.values(db.prepare('pragma integrity_check').get()!)[0]
  } finally {
    db.close()
  }
}

test.skipIf(whyNoDisk !== null)(
  'on a full disk submit is STORE_FULL, nothing acknowledged is lost, and room makes it work again',
  async () => {
    const place = join(disk, 'full')
    const file = join(place, 'full.db')
    const ballast = (round: number): string => join(place, `ballast-${round}`)
    mkdirSync(place)
    for (let round = 0; round < ROUNDS; round++) writeFileSync(ballast(round), Buffer.alloc(512 * 1024))
    const client = await connect(`sqlite:${file}`, { logger: silentLogger })
    const acknowledged: Task[] = []
    let refusals = 0
    for (let round = 0; round < ROUNDS; round++) {
      let error: HoldfastError | null = null
      while (error === null) {
        try {
          acknowledged.push(await client.submit('work', { filler: 'x'.repeat(20_000) }))
        } catch (thrown) {
          if (!isHoldfastError(thrown)) throw thrown
          error = thrown
        }
      }
      expect(error.code).toBe('STORE_FULL')
      refusals++
      rmSync(ballast(round))
      acknowledged.push(await client.submit('work', 'there is room again'))
    }
    const there = await Promise.all(acknowledged.map(({ id }) => client.get(id)))
    expect(there.every(({ status }) => status === 'pending')).toBe(true)
    expect((await client.count()).count).toBe(acknowledged.length)
    await client.close()
    expect(integrityOf(file)).toBe('ok')
    report(`full disk: ${refusals} times full, ${acknowledged.length} acknowledged, all there, integrity ok`)
    rmSync(place, { recursive: true })
  },
)

test.skipIf(whyNoDisk !== null)('a store that says yes on a full disk would be noticed', async () => {
  const place = join(disk, 'planted')
  mkdirSync(place)
  const store = planted(await openSqlite(join(place, 'planted.db')), 'ignore-full')
  const client = await connect(store, { logger: silentLogger })
  const items = Array.from({ length: 700 }, () => ({ type: 'work', input: 'x'.repeat(20_000) }))
  for (const item of items) await client.submit(item.type, item.input)
  expect((await client.count()).count).toBeLessThan(items.length)
  await client.close()
  rmSync(place, { recursive: true })
})

/** The store, with the codes of commits that it refused written down. */
const noting = (store: Store, refused: string[]): Store =>
  new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== 'commit') return typeof value === 'function' ? value.bind(target) : value
      return (changes: Parameters<Store['commit']>[0]) =>
        target.commit(changes).catch((error: HoldfastError) => {
          refused.push(error.code)
          throw error
        })
    },
  })

test.skipIf(whyNoDisk !== null)(
  'a worker whose results do not fit on the disk goes on when there is room, and every task completes',
  async () => {
    const place = join(disk, 'worker')
    const file = join(place, 'worker.db')
    const ballast = join(place, 'ballast')
    mkdirSync(place)
    const refused: string[] = []
    const client = await connect(noting(await openSqlite(file), refused), { logger: silentLogger })
    await client.submitMany(Array.from({ length: 100 }, () => ({ type: 'work', input: null, maxRetries: null })))
    const worker = client.worker({ concurrency: 1, leaseTtl: '500ms' }).handle('work', async () => {
      await new Promise((done) => setTimeout(done, 5))
      return 'x'.repeat(50_000)
    })
    // All that is left but a few results' worth.
    const free = 1024 * 1024
    writeFileSync(ballast, Buffer.alloc(SIZE - free - 512 * 1024))
    worker.start()
    await until('a result did not fit', () => refused.length > 0)
    rmSync(ballast)
    await until('all are completed', async () => (await client.count({ status: 'completed' })).count === 100)
    await client.close()
    expect(new Set(refused)).toEqual(new Set(['STORE_FULL']))
    expect(integrityOf(file)).toBe('ok')
    report(`full disk: ${refused.length} results refused, all 100 tasks completed after room was made`)
    rmSync(place, { recursive: true })
  },
)

test.skipIf(whyNoDisk !== null)('a new store on a full disk is STORE_FULL, and opens once there is room', async () => {
  const place = join(disk, 'new')
  mkdirSync(place)
  const ballast = join(disk, 'ballast')
  fillUp(ballast)
  const file = join(place, 'new.db')
  await expect(connect(`sqlite:${file}`, { logger: silentLogger })).rejects.toMatchObject({ code: 'STORE_FULL' })
  rmSync(ballast)
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  await client.submit('work', null)
  await client.close()
  expect(integrityOf(file)).toBe('ok')
})

test.skipIf(whyNoDisk !== null)('a disk that has become read-only is STORE_READ_ONLY at open', async () => {
  const file = join(disk, 'read-only.db')
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  await client.submit('work', null)
  await client.close()
  expect(run('mount', '-o', 'remount,ro', disk)).toBeNull()
  try {
    await expect(connect(`sqlite:${file}`, { logger: silentLogger })).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
    await expect(connect(`sqlite:${disk}/new.db`, { logger: silentLogger })).rejects.toMatchObject({
      code: 'STORE_READ_ONLY',
    })
  } finally {
    run('mount', '-o', 'remount,rw', disk)
  }
  const again = await connect(`sqlite:${file}`, { logger: silentLogger })
  expect((await again.count()).count).toBe(1)
  await again.close()
})
