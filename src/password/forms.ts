/** The longest form besides the bytes as they came (bytes): a decomposed text is up to three times as long, and hashing it costs as much more. */
export const LONGEST_FORM = 511

/**
 * The forms of a password in which it may have been stored: as it came, and in Unicode's NFC and NFD (UAX #15), where these differ. macOS types and
 * stores `é` as two characters, most other systems as one. Nothing else is mapped: RFC 8265 §4.2.1 also maps spaces.
 */
export function formsOf(password: string): readonly string[] {
  const others = [password.normalize('NFC'), password.normalize('NFD')]
  return [...new Set([password, ...others.filter((form) => Buffer.byteLength(form) <= LONGEST_FORM)])]
}
