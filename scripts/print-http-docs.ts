/** Generates parts of docs/http.md from the code: the routes with their permissions, and the status of every error code. */
import { ROUTES } from '../src/http/routes.ts'
import { HTTP_CODES, STATUSES } from '../src/http/wire/statuses.ts'

const PART = /(<!-- printed: ([^>]+) -->\n)[\s\S]*?(<!-- end -->)/g

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const routes = (): string =>
  table(
    ['route', 'right', 'what it does'],
    ROUTES.map(({ method, path, right, summary }) => [`\`${method.toUpperCase()} ${path}\``, `\`${right}\``, summary]),
  )

const statuses = (): string => {
  const byStatus = Map.groupBy(Object.entries(STATUSES), ([, status]) => status)
  const library = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, codes]) => [String(status), codes.map(([code]) => `\`${code}\``).join(', ')])
  const own = Object.entries(HTTP_CODES).map(([code, { status, text, fix }]) => [
    `\`${code}\``,
    String(status),
    text,
    fix,
  ])
  return `${table(['status', 'library codes'], library)}\n\nThe HTTP handler adds codes of its own:\n\n${table(
    ['code', 'status', 'meaning', 'what to do'],
    own,
  )}`
}

const PARTS: Readonly<Record<string, () => string>> = { routes, statuses }

export const withPrintedRoutes = (text: string): string =>
  text.replace(PART, (_, begin: string, name: string, end: string) => `${begin}\n${PARTS[name]!()}\n\n${end}`)
