/** The relative links of a page that goes into the package. */

/** Brackets may contain code with brackets, but no other link. */
const LINK = /(!?)\[((?:[^[\]]|\[[^[\]]*\](?!\())*)\]\(([^)\s]+)\)/g

/** Relative links to files. An anchor inside the page and an address with a scheme are none. */
const isRelative = (to: string): boolean => !/^(#|[a-z]+:)/i.test(to)

const fileOf = (to: string): string => to.replace(/[#?].*$/, '').replace(/^\.\//, '')

export const relativeLinks = (page: string): readonly string[] =>
  [...page.matchAll(LINK)]
    .map(([, , , to]) => to!)
    .filter(isRelative)
    .map(fileOf)

/**
 * Links to files for which `isHere` is false are made to begin with `base`. If it is null, their text is kept, and a picture is left out.
 */
export const withoutDeadLinks = (page: string, isHere: (path: string) => boolean, base: string | null): string =>
  page.replace(LINK, (whole, picture: string, text: string, to: string) => {
    if (!isRelative(to) || isHere(fileOf(to))) return whole
    if (base === null) return picture === '' ? text : `(${text})`
    const address = `${base}${to.replace(/^\.\//, '')}`
    return `${picture}[${text}](${picture === '' ? address : address.replace('/blob/', '/raw/')})`
  })
