/** Waits until `work` is done, at most `time` ms. */
export async function waitAtMost(time: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, time)
  })
  await Promise.race([work, over])
  clearTimeout(timer)
}
