/** A soak as a picture: one small chart for each figure, with a line for each process. Readable on light and on dark. */

export interface Line {
  readonly name: string
  readonly points: readonly { readonly minute: number; readonly value: number }[]
}

export interface Chart {
  readonly title: string
  readonly unit: string
  readonly lines: readonly Line[]
}

const COLUMNS = 3
const [WIDTH, HEIGHT] = [290, 150]
/** Around the drawing area of a chart. */
const [LEFT, RIGHT, TOP, BOTTOM] = [42, 10, 26, 24]
const HEAD = 30
const LINE_COLORS = ['#2f81d8', '#d9702b', '#2da362', '#a55fd0', '#c2a21d', '#d64b6f']

const STYLE = `text{font:11px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;fill:#24292f}.grid{stroke:#d0d7de;stroke-width:1}polyline{fill:none;stroke-width:1.5;stroke-linejoin:round}
.back{fill:#fff}@media(prefers-color-scheme:dark){.back{fill:#0d1117}text{fill:#9198a1}.title{fill:#e6edf3}.grid{stroke:#3d444d}}`

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** Of 1, 2 and 5 times a power of ten, the next above. */
export const roundUp = (value: number): number => {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power
}

const amount = (value: number): string =>
  value >= 1_000 ? `${Math.round(value / 100) / 10}k` : String(Math.round(value * 100) / 100)

const drawn = ({ title, unit, lines }: Chart, colorOf: (name: string) => string, last: number): string => {
  const values = lines.flatMap(({ points }) => points.map(({ value }) => value))
  const highest = roundUp(Math.max(0, ...values))
  const x = (minute: number): number => LEFT + (minute / Math.max(1, last)) * (WIDTH - LEFT - RIGHT)
  const y = (value: number): number => HEIGHT - BOTTOM - (value / highest) * (HEIGHT - TOP - BOTTOM)
  const grid = [0, highest / 2, highest].map(
    (value) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}"/><text x="${LEFT - 5}" y="${y(value) + 4}" text-anchor="end">${amount(value)}</text>`,
  )
  const ends = [0, last].map(
    (minute, n) =>
      `<text x="${x(minute)}" y="${HEIGHT - 8}" text-anchor="${n === 0 ? 'start' : 'end'}">${n === 0 ? '0' : `${minute} min`}</text>`,
  )
  const paths = lines.map(({ name, points }) => {
    const path = points.map(({ minute, value }) => `${x(minute).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    return `<polyline stroke="${colorOf(name)}" points="${path}"/>`
  })
  const heading = `<text class="title" x="${LEFT}" y="16">${escaped(unit === '' ? title : `${title}, ${unit}`)}</text>`
  return [heading, ...grid, ...ends, ...paths].join('')
}

export const plotOf = (heading: string, charts: readonly Chart[]): string => {
  const names = [...new Set(charts.flatMap(({ lines }) => lines.map(({ name }) => name)))]
  const colorOf = (name: string): string => LINE_COLORS[names.indexOf(name) % LINE_COLORS.length]!
  const last = Math.max(1, ...charts.flatMap(({ lines }) => lines.flatMap(({ points }) => points.at(-1)?.minute ?? 0)))
  const [width, height] = [COLUMNS * WIDTH, HEAD + 20 + Math.ceil(charts.length / COLUMNS) * HEIGHT]
  let at = LEFT
  const legend = names.map((name) => {
    const key = `<line x1="${at}" x2="${at + 16}" y1="${HEAD + 2}" y2="${HEAD + 2}" stroke="${colorOf(name)}" stroke-width="2"/><text x="${at + 21}" y="${HEAD + 6}">${escaped(name)}</text>`
    at += 40 + name.length * 7
    return key
  })
  const panels = charts.map(
    (chart, n) =>
      `<g transform="translate(${(n % COLUMNS) * WIDTH},${HEAD + 20 + Math.floor(n / COLUMNS) * HEIGHT})">${drawn(chart, colorOf, last)}</g>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img"><title>${escaped(heading)}</title><style>${STYLE}</style><rect class="back" width="${width}" height="${height}"/><text class="title" x="${LEFT}" y="18">${escaped(heading)}</text>${legend.join('')}${panels.join('')}</svg>\n`
}
