/** The supported versions of Node, as in `engines` of package.json and in the launcher. */

const SUPPORTED = 'Node 22.22.3 or later of 22, or 24.15 or later'

export const isSupportedNode = (version: string): boolean => {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major === 22) return minor > 22 || (minor === 22 && patch >= 3)
  return major > 24 || (major === 24 && minor >= 15)
}

/** null if the version is supported. */
export const unsupportedNode = (version: string): string | null =>
  isSupportedNode(version) ? null : `Holdfast needs ${SUPPORTED}; this is Node ${version}`

/** Such a version lacks parts of the language, so no store runs on it. A newer one that is not supported runs stores that need no module of Node. */
export const isTooOldToRun = (version: string): boolean => Number(version.split('.', 1)[0]) < 22
