/** Passes on only what differs from the time before. */
export function onChange<T>(tell: (value: T) => void): (value: T) => void {
  let told: T | undefined
  return (value) => {
    if (value === told) return
    told = value
    tell(value)
  }
}
