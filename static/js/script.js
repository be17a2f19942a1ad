// Scripts of others that only some pages need.

const loading = new Map(); // address -> promise

/** Resolves once the script is loaded. After a failure the next call tries again. */
export function loadScript(source) {
  if (!loading.has(source)) {
    loading.set(
      source,
      new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = source;
        script.addEventListener("load", resolve);
        script.addEventListener("error", () => {
          loading.delete(source);
          reject(new Error(source));
        });
        document.head.append(script);
      }),
    );
  }
  return loading.get(source);
}
