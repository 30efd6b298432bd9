/** Whether an import failed because the package is not there: in a bundle for CommonJS it has become a require. */
export const isModuleMissing = (error: unknown): boolean => {
  const { code } = error as { readonly code?: unknown }
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
