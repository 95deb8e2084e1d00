/** The largest form (bytes). */
export const LONGEST_FORM = 8_192

/** Whether the target of a request is the token endpoint, in its one spelling. */
export function isTokenEndpoint(target: string): boolean {
  return target === '/oauth/token' || target.startsWith('/oauth/token?')
}

/** The values of a field. `rawHeaders`: alternating names and values. */
export function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}

/** The token that a request shows in its one `Authorization` field; otherwise undefined. */
export function bearerIn(rawHeaders: readonly string[]): string | undefined {
  const values = valuesOf(rawHeaders, 'authorization')
  return values.length === 1 ? /^bearer +(\S+)$/i.exec(values[0] ?? '')?.[1] : undefined
}

/** The parameters of a form; undefined if it is none, is malformed or repeats one. An empty parameter counts as missing. */
export function parametersIn(contentType = '', text: string): ReadonlyMap<string, string> | undefined {
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType)) return undefined
  try {
    const pairs = text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => pair.replaceAll('+', ' ').split(/=(.*)/s, 2).map(decodeURIComponent))
    if (new Set(pairs.map(([name]) => name)).size < pairs.length) return undefined
    return new Map(pairs.flatMap(([name = '', value = '']) => (value === '' ? [] : [[name, value] as const])))
  } catch {
    return undefined // malformed escapes or UTF-8
  }
}
