/** What somebody typed as JSON, or an error that says so. */
export const parsedJson = (text: string, what = 'input'): unknown => {
  try {
    return JSON.parse(text)
  } catch (thrown) {
    throw new Error(`The ${what} is not JSON: ${(thrown as Error).message}`)
  }
}
