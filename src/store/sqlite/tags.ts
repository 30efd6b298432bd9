/** Tags stand in the options, a JSON text. */
export const withTags = (tags: string): string => `json_set(coalesce(options, '{}'), '$.tags', json(${tags}))`
