/** What a newcomer asks, the page that answers it, and what stands there: within two clicks from the first page of the docs, of the site and from the README. */
export const QUESTIONS: readonly { readonly question: string; readonly page: string; readonly answer: RegExp }[] = [
  { question: 'How do I limit to 2 per customer?', page: 'docs/flow-control.md', answer: /perGroup: 2/ },
  { question: 'Why is my task dead?', page: 'docs/guides/dead-letters-at-3am.md', answer: /dead --groups/ },
  { question: 'How do I deploy without losing work?', page: 'docs/guides/deploys.md', answer: /What SIGTERM does/ },
]
