/** Reads pages of Markdown: their headings, links and blocks of code. What checks the pages and what builds the site use the same rules. */

export interface Link {
  readonly line: number
  readonly target: string
}

export interface Block {
  readonly line: number
  /** What follows the fence: `ts`, `ts run`, `sh`. */
  readonly info: string
  readonly code: string
}

const FENCE = /^ *(`{3,})([^\n`]*)\n([\s\S]*?)^ *\1`*[ \t]*$/gm

export const blocksOf = (page: string): Block[] =>
  [...page.matchAll(FENCE)].map(({ 2: info, 3: code, index }) => ({
    line: page.slice(0, index).split('\n').length,
    info: info!.trim(),
    code: code!,
  }))

/** The runnable snippets of a page: ```ts run */
export const snippetsOf = (page: string): string[] =>
  blocksOf(page)
    .filter(({ info }) => info === 'ts run')
    .map(({ code }) => code)

/** The page with its code and comments blanked, every line in its place. */
export const proseOf = (page: string): string =>
  page
    .replace(FENCE, blank)
    .replace(/<!--[\s\S]*?-->/g, blank)
    .replace(/`[^`\n]+`/g, blank)

const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

export const linksOf = (page: string): Link[] =>
  [...proseOf(page).matchAll(/\]\(([^()\s]+)\)/g)].map((found) => ({
    line: page.slice(0, found.index).split('\n').length,
    target: found[1]!,
  }))

/** The name under which a heading can be linked, as hosts of repositories derive it; the site does the same. */
export const slugOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-')

/** All anchors of a page. A heading that is there twice gets a number. */
export const anchorsOf = (page: string): Set<string> => {
  const anchors = new Set<string>()
  for (const [, heading] of page.replace(FENCE, blank).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const slug = slugOf(heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'))
    let name = slug
    for (let n = 1; anchors.has(name); n++) name = `${slug}-${n}`
    anchors.add(name)
  }
  return anchors
}

export const titleOf = (page: string): string => /^# +(.+)$/m.exec(page)?.[1]?.replaceAll('`', '') ?? ''
