/** A line chart of the last minutes, drawn by uPlot. The legend is our own and shows the values at the pointer, or the latest. */
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { isDark } from '../theme.ts'
import { timeOfDay } from '../words.ts'

interface Line {
  readonly label: string
  /** The name of a colour in tokens.css, without the dashes. */
  readonly colour: string
  readonly filled?: boolean
  readonly dashed?: boolean
}

type Values = readonly (number | null)[]

interface ChartProps {
  readonly label: string
  readonly lines: readonly Line[]
  /** Milliseconds, and for each line one value at each. */
  readonly times: readonly number[]
  readonly values: readonly Values[]
  readonly format: (value: number) => string
  /** The end of the time axis. */
  readonly until: number
}

const HEIGHT = 148
const LONGEST = 300
const SHORTEST = 60

/** A canvas does not resolve custom properties, so the colour is read from an element that has it. */
const colourOf = (element: HTMLElement, name: string): string => {
  element.style.color = `var(--${name})`
  const { color } = getComputedStyle(element)
  element.style.color = ''
  return color
}

const faded = (colour: string, part: number): string => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${part})`)

const optionsOf = (
  element: HTMLElement,
  { lines, format }: ChartProps,
  range: { readonly current: uPlot.Range.MinMax },
  onPoint: (index: number | null) => void,
): uPlot.Options => {
  const text = colourOf(element, 'muted')
  const grid = { stroke: colourOf(element, 'line'), width: 1 }
  const font = `11px ${getComputedStyle(element).fontFamily}`
  return {
    width: Math.max(200, element.clientWidth),
    height: HEIGHT,
    // Room for half of the last label.
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: () => range.current },
      y: { range: (_, __, max) => [0, Math.max(1, (max ?? 0) * 1.15)] },
    },
    axes: [
      {
        stroke: text,
        font,
        grid: { show: false },
        ticks: { show: false },
        size: 30,
        gap: 8,
        space: 72,
        values: (_, splits) => splits.map((at) => timeOfDay(at * 1_000)),
      },
      {
        stroke: text,
        font,
        grid,
        ticks: { show: false },
        size: 52,
        space: 32,
        values: (_, splits) => splits.map(format),
      },
    ],
    series: [
      {},
      ...lines.map(({ colour, filled = false, dashed = false }) => {
        const stroke = colourOf(element, colour)
        return {
          stroke,
          width: 1.6,
          ...(dashed && { dash: [4, 3] }),
          ...(filled && { fill: faded(stroke, 0.13) }),
          points: { show: false },
        }
      }),
    ],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  }
}

export const Chart = (props: ChartProps) => {
  const { label, lines, times, values, format, until } = props
  const holder = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const range = useRef<uPlot.Range.MinMax>([0, 1])
  const [pointed, setPointed] = useState<number | null>(null)
  const dark = isDark()

  useEffect(() => {
    const element = holder.current!
    const made = new uPlot(optionsOf(element, props, range, setPointed), [[], ...lines.map(() => [])], element)
    plot.current = made
    const watcher = new ResizeObserver(() =>
      made.setSize({ width: Math.max(200, element.clientWidth), height: HEIGHT }),
    )
    watcher.observe(element)
    return () => {
      watcher.disconnect()
      made.destroy()
    }
  }, [dark])

  useEffect(() => {
    const seconds = times.map((at) => at / 1_000)
    const end = until / 1_000
    range.current = [Math.max(end - LONGEST, Math.min(seconds[0] ?? end, end - SHORTEST)), end]
    plot.current?.setData([seconds, ...values.map((one) => [...one])] as uPlot.AlignedData)
  })

  const index = pointed ?? times.length - 1
  const shown = lines.map((line, i) => ({ ...line, value: values[i]?.[index] ?? null }))
  return (
    <figure class="chart">
      <figcaption>
        <span class="name">{label}</span>
        {shown.map(({ label: name, colour, value, dashed }) => (
          <span class={`key${dashed ? ' dashed' : ''}`} data-colour={colour} key={name}>
            {name} <b>{value === null ? '–' : format(value)}</b>
          </span>
        ))}
      </figcaption>
      <div ref={holder} class="plot" aria-hidden="true" />
    </figure>
  )
}
