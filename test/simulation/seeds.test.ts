/** The tier of the simulation that runs with every `npm test`. `npm run simulate` runs more. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('../../scripts/simulate.ts', import.meta.url))

const simulate = (...args: readonly string[]): { readonly said: string; readonly code: number | null } => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
  return { said: stdout + stderr, code: status }
}

const tracesIn = (said: string): readonly string[] => said.match(/traces \w+/g) ?? []

describe('the simulation', () => {
  it('[Q01][Q03][Q04][R04][AA2] finds no violation in 500 seeds, and reaches every interesting state', () => {
    const { said, code } = simulate('--seeds', '500')
    console.log(said)
    expect(code, said).toBe(0)
  }, 600_000)

  it('gives the same bytes for the same seeds, in other threads, in another order, and where processes share no module', () => {
    const one = simulate('--seeds', '12', '--seed', '1000', '--jobs', '1')
    const other = simulate('--seeds', '12', '--seed', '1000', '--jobs', '3', '--isolated')
    expect(tracesIn(one.said).length).toBeGreaterThan(0)
    expect(tracesIn(other.said)).toEqual(tracesIn(one.said))
  }, 120_000)
})
