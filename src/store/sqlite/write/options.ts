/** Rare fields are stored in the options, a JSON text. `json` is bound as JSON. */
export const withOption = (options: string, name: string, json: string): string =>
  `json_set(coalesce(${options}, '{}'), '$.${name}', json(${json}))`
