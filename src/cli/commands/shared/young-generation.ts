/**
 * Keeps a process that runs for long small. V8 lets the young generation grow to 128 MB in any process that is busy for some
 * seconds, without a gain here: a drain was as fast with 4 MB. It cannot be shrunk, only kept from growing, so it is watched while
 * the process warms up. A size that the user has set (node --max-semi-space-size) stays.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Both semi-spaces together. */
const LARGEST = 4 * 1_024 * 1_024
const LOOK_EVERY = 20

export const limitYoungGeneration = (): void => {
  const given = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ')
  if (/semi[-_]space/.test(given)) return
  const timer = setInterval(() => {
    const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
    if (space !== undefined && space.space_size < LARGEST) return
    setFlagsFromString('--semi-space-growth-factor=1')
    clearInterval(timer)
  }, LOOK_EVERY)
  timer.unref()
}
