/**
 * Shows invisible characters, and characters that change the direction of others, by their numbers. Otherwise a name that contains U+202E would read
 * backwards, and two names could look alike. Every text and every title passes through here on its way to the page.
 */
import { Fragment, options, type VNode } from 'preact'

/** Marks and overrides of direction, spaces without width or ink, invisible operators, tags, and controls other than those of lines and tabs. */
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e00ff}]|\u034f|\u17b4|\u17b5/gu

const codeOf = (character: string): string => character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')

export const visible = (text: string): string => text.replace(HIDDEN, (character) => `[U+${codeOf(character)}]`)

/** The same for JSON text, which remains valid JSON. */
export const escaped = (json: string): string =>
  json.replace(HIDDEN, (character) =>
    [...Array(character.length).keys()]
      .map((i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`)
      .join(''),
  )

const shown = (child: unknown): unknown => {
  if (typeof child === 'string') return visible(child)
  return Array.isArray(child) ? child.map(shown) : child
}

/** Attributes that contain text for the user. */
const SAID = ['title', 'aria-label', 'placeholder'] as const

export const makeHiddenVisible = (): void => {
  const before = options.vnode
  options.vnode = (node: VNode) => {
    const props = node.props as Record<string, unknown>
    if (typeof node.type === 'string' || node.type === Fragment) {
      if ('children' in props) props['children'] = shown(props['children'])
      for (const name of SAID) if (typeof props[name] === 'string') props[name] = visible(props[name])
    }
    before?.(node)
  }
}
