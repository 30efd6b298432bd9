/** Parses text that a user typed. Throws an error with a readable message if it is not JSON. */
export const parsedJson = (text: string, what = 'input'): unknown => {
  try {
    return JSON.parse(text)
  } catch (thrown) {
    throw new Error(`The ${what} is not JSON: ${(thrown as Error).message}`)
  }
}
