/** Draws lines on a terminal: redrawn in place, clipped to its width, with the cursor hidden until the end. */
import { clearLine, clearScreenDown, cursorTo, moveCursor } from 'node:readline'
import { paint } from '../output/render.ts'
import type { Line } from './scene.ts'

export interface Screen {
  draw(lines: readonly Line[]): void
  /** Keeps or clears the last picture, and shows the cursor again. */
  close(options: { readonly keepPicture: boolean }): void
}

const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'

export const openScreen = (terminal: NodeJS.WriteStream): Screen => {
  let height = 0
  const showCursor = (): void => void terminal.write(SHOW_CURSOR)
  terminal.write(HIDE_CURSOR)
  process.once('exit', showCursor)
  const home = (): void => {
    moveCursor(terminal, 0, -height)
    cursorTo(terminal, 0)
  }
  return {
    draw(lines) {
      // A picture taller than the terminal cannot be redrawn in place, so its end is cut off.
      const shown = lines.slice(0, Math.max(1, (terminal.rows ?? 24) - 1))
      terminal.cork()
      home()
      for (const line of shown) {
        terminal.write(textOf(line, (terminal.columns ?? 80) - 1))
        clearLine(terminal, 1)
        terminal.write('\n')
      }
      clearScreenDown(terminal)
      terminal.uncork()
      height = shown.length
    },
    close({ keepPicture }) {
      if (!keepPicture) {
        home()
        clearScreenDown(terminal)
      }
      process.off('exit', showCursor)
      showCursor()
    },
  }
}

/** Styled text, truncated to `width` columns. */
export const textOf = (line: Line, width = Number.POSITIVE_INFINITY): string => {
  let left = width
  let text = ''
  for (const [part, style] of line) {
    const cut = part.length <= left ? part : part.slice(0, Math.max(0, left))
    left -= cut.length
    text += style === undefined || cut === '' ? cut : paint(style, cut)
  }
  return text
}
