/** How long each page takes, asked for again and again, one after the other. */
import { medianOf } from '../median.ts'
import { createdAtOf, idOf } from './mix.ts'
import { type PageOf, pagesOf } from './pages.ts'
import { ask } from './server.ts'

/** Milliseconds, of 95 pages in a hundred. */
const MOST = 300

/** With ids that are in the store, which was filled at `filledAt`. */
export const pagesAt = async (url: string, total: number, filledAt: number): Promise<PageOf[]> => {
  const middle = Math.floor(total / 2)
  return pagesOf({
    completed: await idWith(url, 'completed'),
    ready: await idWith(url, 'ready'),
    dead: await idWith(url, 'dead'),
    middle: idOf(middle, createdAtOf(middle, total, filledAt)),
  })
}

const idWith = async (url: string, status: string): Promise<string> => {
  const { tasks } = JSON.parse(await ask(url, `/tasks?limit=1&status=${status}`)) as { tasks: { id: string }[] }
  return tasks[0]!.id
}

export const measurePages = async (url: string, pages: readonly PageOf[], times: number): Promise<void> => {
  let missed = 0
  for (const { name, asks } of pages) {
    const took: number[] = []
    for (let n = 0; n < times; n++) {
      const began = performance.now()
      await Promise.all(asks.map((one) => ask(url, one)))
      took.push(performance.now() - began)
    }
    took.sort((a, b) => a - b)
    const p95 = took[Math.ceil(took.length * 0.95) - 1]!
    if (p95 > MOST) missed++
    const shown = [medianOf(took), p95].map((ms) => `${ms.toFixed(1).padStart(8)} ms`)
    console.log(`  ${name.padEnd(42)} p50 ${shown[0]}  p95 ${shown[1]}${p95 > MOST ? '  MISSED' : ''}`)
  }
  console.log(`\n  ${missed} of ${pages.length} pages take longer than ${MOST} ms (95th percentile of ${times})`)
}
