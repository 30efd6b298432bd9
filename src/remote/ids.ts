/** UUIDs of version 7. They begin with the time, so that stores keep recent tasks next to each other. */
export const newId = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  const now = Date.now()
  const head = new DataView(bytes.buffer)
  head.setUint32(0, Math.floor(now / 0x1_0000))
  head.setUint16(4, now % 0x1_0000)
  bytes[6] = (bytes[6]! & 0x0f) | 0x70
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
