/** Every file under examples/ is run as its first line says, and the code of docs/flow-control.md compiles. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'))
afterAll(() => rmSync(folder, { recursive: true }))

const example = async (name: string, ...args: string[]): Promise<string> => {
  const { stdout } = await run(process.execPath, [join('examples', name), ...args], {
    env: { ...process.env, NO_COLOR: '1' },
  })
  return stdout
}

describe('the examples do what they say', () => {
  it('[N01][N02][I13] quick-start sleeps on a rate limit, then completes, and shows its history', async () => {
    const said = await example('quick-start.ts', `sqlite:${join(folder, 'quick.db')}`)
    expect(said).toMatch(/ended with 200/)
    expect(said).toMatch(/1\. submit → pending[\s\S]*3\. reschedule → pending[\s\S]*5\. complete → completed/)
  })

  it('transaction commits a row and its task together, and neither on rollback', async () => {
    const said = await example('transaction.ts', join(folder, 'shop.db'))
    expect(said).toBe('refused: a negative order\n1 orders, 1 receipts to send\n')
  })

  it('json-file-store runs a task from a store of its own', async () => {
    expect(await example('json-file-store.ts', join(folder, 'tasks.json'))).toContain('Hello, Ada\n')
  })

  it('by-hand claims, renews and completes', async () => {
    expect(await example('by-hand.ts', `sqlite:${join(folder, 'hand.db')}`)).toMatch(
      /resize is completed { width: 640, fence: 1 }/,
    )
  })

  it('[I13][I14] rate-limits shows a breaker, a retry and a time window', async () => {
    expect(await example('rate-limits.ts')).toBe(
      'charge { charged: true } after 4 attempts\nrefund { refunded: true } after 2 attempts\ntrade { traded: true } after 2 attempts\n',
    )
  })

  it('per-customer runs two tasks of each customer at once, and the small ones do not wait for the large one', async () => {
    const said = await example('per-customer.ts', `sqlite:${join(folder, 'customers.db')}`)
    expect(said).toMatch(/^acme: at most 2 at once\nglobex: at most [12] at once\ninitech: at most [12] at once\n/)
    const before = Number(/after (\d+) of 20 of acme/.exec(said)?.[1])
    expect(before).toBeLessThanOrEqual(10)
  })

  it('debounce runs once for ten edits, and once more for an edit during the run', async () => {
    expect(await example('debounce.ts', `sqlite:${join(folder, 'debounce.db')}`)).toBe(
      [
        "first run: { indexed: 'draft 10' }",
        'an edit meanwhile is another task',
        "second run: { indexed: 'final' }",
        '2 runs for 11 edits',
        '',
      ].join('\n'),
    )
  })
})

/** What the blocks of a page take for granted. */
const PRELUDE = `import { connect, defineTask, RescheduleError } from 'holdfast'
const holdfast = await connect('memory:')
const worker = holdfast.worker()
export { defineTask, RescheduleError, worker }
`

it('the code blocks of docs/flow-control.md compile against the package', async () => {
  const page = readFileSync('docs/flow-control.md', 'utf8')
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block!)
  expect(blocks.length).toBeGreaterThan(5)
  // In the repository, so that the package finds itself by its name.
  const place = mkdtempSync(join(artefacts(), 'flow-control-'))
  try {
    for (const [n, block] of blocks.entries()) writeFileSync(join(place, `block-${n}.ts`), `${PRELUDE}${block}`)
    writeFileSync(
      join(place, 'tsconfig.json'),
      JSON.stringify({ extends: '../../tsconfig.json', include: ['./*.ts'], compilerOptions: { noEmit: true } }),
    )
    await expect(
      run(join('node_modules', '.bin', 'tsc'), ['-p', place]).catch(({ stdout }) => ({ stdout })),
    ).resolves.toMatchObject({ stdout: '' })
  } finally {
    rmSync(place, { recursive: true })
  }
})

const artefacts = (): string => {
  mkdirSync('test-artefacts', { recursive: true })
  return 'test-artefacts'
}
