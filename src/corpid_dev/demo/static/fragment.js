// Hands over the answer that stands behind the # of the address, and takes it out of the address (D38).
"use strict";

const form = document.getElementById("answer");
form.elements.fragment.value = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
form.submit();
