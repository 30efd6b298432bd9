/** Workers over HTTP alone, on SQLite. */
import { spawnSync } from 'node:child_process'
import { it } from 'vitest'
import { makeFolder } from '../cli/shell.ts'
import { httpWorkersAlone } from './http-only.ts'

const hasPython = spawnSync('python3', ['--version']).status === 0

it.skipIf(!hasPython)(
  `three workers in Python and a server are enough: schedules, ttl, retention, leases of the dead${hasPython ? '' : ' (skipped: no python3)'}`,
  { timeout: 180_000 },
  async () => {
    const folder = makeFolder()
    const env = { HOLDFAST_URL: folder.url }
    await folder.run(['init'], { env })
    await httpWorkersAlone(folder, env)
  },
)
