/** A value read from text, or what is wrong with the text: the end of a sentence that starts with the key. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string }
