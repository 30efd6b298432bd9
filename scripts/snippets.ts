/** The snippets of a page that are marked as runnable: ```ts run */

export const snippetsOf = (page: string): string[] =>
  [...page.matchAll(/^```ts run\n(.*?)^```$/gms)].map(([, snippet]) => snippet!)
